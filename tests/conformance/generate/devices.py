"""Expressions that select devices."""

from steps import *

API = "/apis/resource.k8s.io/v1"
CLASSES, CLAIMS = API + "/deviceclasses", API + "/namespaces/${u}/resourceclaims"
TEMPLATES, SLICES = API + "/namespaces/${u}/resourceclaimtemplates", API + "/resourceslices"


def cls(*texts, name="${u}-c"):
    """A class that selects by expressions."""
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": text}} for text in texts]}}


def claim(request, name="a"):
    """A claim with a request."""
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}


A, C = 'device.attributes["a.example"]', 'device.capacity["a.example"]'
TEXTS = [
    "true", "false", "device.driver == 'a.example'", A + ".model == 'x'", A + ".healthy", A + "['model'].startsWith('x')",
    'device.driver == "a.example" && ' + C + '.memory.compareTo(quantity("1Gi")) >= 0', C + ".memory.isGreaterThan(quantity('1Gi'))",
    C + ".memory == quantity('1Gi')", C + ".memory > 5", A + ".count > 5", A + ".count + 1 == 2", A + ".version.isGreaterThan(semver('1.0.0'))",
    "semver('1.2.3').isLessThan(" + A + ".version)", "device.allowMultipleAllocations", "device.allowMultipleAllocations == true",
    "'a.example' in device.attributes", "'model' in " + A, "has(device.driver)", "has(device.attributes)", "has(" + A + ".model)", "has(" + C + ".memory)",
    "device.attributes['a'].size() > 0", "device.attributes.size() > 0", "size(device.driver) > 3", "device.driver.matches('^a.*')", "device.driver.lowerAscii() == 'a'",
    "cel.bind(dra, " + A + ", dra.one && dra.two)", "cel.bind(dra, " + A + ", dra.one == 'x' || dra.two == 5)", "cel.bind(d, device, d.driver == 'x')",
    "device.attributes.exists(k, k == 'a')", "device.attributes.all(k, device.attributes[k].size() < 5)", "device.attributes.all(k, device.attributes[k].all(l, device.attributes[k][l] == 'x'))",
    "device.attributes.map(k, k).size() == 1", "device.capacity.exists(k, v, v['x'] == quantity('1'))", A + ".list.exists(x, x == 'a')", A + ".includes('a')", A + ".model.includes('a')",
    A + ".model in ['a', 'b']", A + "[?'model'].orValue('x') == 'x'", "device.?attributes['a'].b.orValue(false)", "optional.of(device.driver).hasValue()",
    # Faults.
    "", " ", "1", "'x'", "null", "device", "device.driver", "device.attributes", A, A + ".model", C + ".memory", "noSuchVar", "device.nope", "device.driver.nope", "device.driver > 5", A + ".model.nope()",
    "device.attributes[5].x", "device.attributes.a.b", "device.attributes['a'].b.c", "true &&", "true)", "(true", "'", "a b", "self.x", "object == null", "device.driver == 5", "device.allowMultipleAllocations == 'x'",
    C + ".memory == '1Gi'", C + ".memory.compareTo('1Gi') > 0", "quantity(device.driver).isInteger()", "quantity('x').isInteger()", "semver('x') == semver('1.0.0')", "device.driver.matches('(')", "ip('x').family() == 4", "authorizer.path('/x').check('get').allowed()",
    "url('http://x').getHost() == ''", "dyn(device).driver == 'x'", "dyn(5)", "type(device) == string", "[1, 'a'].size() == 2", "'%s %q'.format([1]) == ''", "jsonpatch.escapeKey('x') == ''", "Object{} == Object{}", "kubernetes.DRADevice{driver: 'x'}.driver == 'x'", "int('x') == 1", "duration('x') == duration('1s')",
    "1 / 0 == 1", "device.driver[0] == 'x'", "device.driver ? true : false", A + ".healthy ? true : false", A + ".healthy && true", "!" + A + ".healthy", A + ".healthy == true", "device.driver == 'a' ? " + A + ".healthy : false",
    "x.y", "device.attributes[device.driver].x == 'y'", "'<<600*x>>' == 'x'", "<<200*true && >>true", "'<<10300*x>>' == 'x'", "<<90*(>>true<<90*)>>",
    # Too much work.
    "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, device.attributes.all(e, true)))))",
    "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, device.attributes.all(d, true))))",
    "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, true)))",
    "device.attributes.all(a, device.attributes[a].all(b, device.attributes[a][b].matches('x*y')))",
    "device.attributes.all(a, device.attributes[a].all(b, device.attributes.all(c, device.attributes[c].all(d, device.attributes[a][b] == device.attributes[c][d]))))",
    "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, a + b + c == 'x')))",
    "device.capacity.all(a, device.capacity[a].all(b, device.capacity.all(c, device.capacity[c].all(d, device.capacity[a][b].isGreaterThan(device.capacity[c][d])))))",
    "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, device.driver.contains('x'))))))",
]
script("devices", "expressions", 2, "expressions of classes of devices", [post(CLASSES + "?dryRun=All", cls(text), pick=["/kind"]) for text in TEXTS])
EXACT = {"deviceClassName": "c", "selectors": [{"cel": {"expression": "device.nope"}}]}
FIRST = {"name": "r", "firstAvailable": [dict(EXACT, name="s"), {"name": "t", "deviceClassName": "c", "selectors": [{"cel": {"expression": "1"}}, {}, {"cel": {}}]}]}
script("devices", "places", 2, "expressions of claims, templates and of several selectors", [
    post(CLASSES, cls("true")),
    post(CLASSES + "?dryRun=All", cls("1", "device.nope", "true", "")),
    post(CLASSES + "?dryRun=All", cls(*["true"] * 32), pick=["/kind"]),
    post(CLASSES + "?dryRun=All", cls(*["true"] * 33), pick=["/kind"]),
    post(CLASSES + "?dryRun=All", {"metadata": {"name": "x"}, "spec": {"selectors": [{}, {"cel": {}}, {"cel": None}, {"cel": {"expression": "1", "x": 1}}]}}),
    patch(CLASSES + "/${u}-c", {"spec": {"selectors": [{"cel": {"expression": "device.nope"}}]}}),
    patch(CLASSES + "/${u}-c", {"metadata": {"labels": {"a": "b"}}}, pick=["/metadata/labels"]),
    apply(CLASSES + "/${u}-c", cls("device.driver"), "m", "&force=true"),
    post(CLAIMS, claim({"name": "r", "exactly": EXACT})),
    post(CLAIMS, claim({"name": "r", "exactly": dict(EXACT, selectors=[{"cel": {"expression": "device.driver == 'x'"}}])}), pick=["/spec"]),
    post(CLAIMS, claim(FIRST, "b")),
    post(TEMPLATES, {"metadata": {"name": "a"}, "spec": {"spec": claim({"name": "r", "exactly": EXACT})["spec"]}}),
    post(TEMPLATES, {"metadata": {"name": "a"}, "spec": {"spec": claim(FIRST)["spec"]}}),
    patch(CLAIMS + "/a", {"spec": {"devices": {"requests": [{"name": "r", "exactly": EXACT}]}}}),
    delete(CLASSES + "/${u}-c", pick=["/kind"]),
])
