use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use windlass::Projection;

#[derive(Projection, Clone, Debug)]
#[projection(of = Pod)]
pub struct View {
    pub metadata: ObjectMeta,
    #[projection(path = "spec.nodeName")]
    pub node: Option<String>,
}

async fn writes(client: windlass::client::Client, view: &View) {
    let views = client.all::<View>();
    let _ = views.patch("a", windlass::api::Patch::Merge(Default::default())).await;
    let _ = views.delete("a").await;
    let _ = views.create(view).await;
    let _ = views.replace(view).await;
}

fn main() {}
