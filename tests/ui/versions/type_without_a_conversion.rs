use windlass::crd::Convertible;

struct Spec;

fn convert<T: Convertible>(specs: &[T]) -> usize {
    specs.len()
}

fn main() {
    convert(&[Spec]);
}
