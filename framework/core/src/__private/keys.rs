//! Documentation of the derives' keys, for editors: generated code refers to a constant here at the
//! position of each key. Written by a test of `windlass-macros` from the tables in its `docs/`.

#![allow(missing_docs, non_upper_case_globals)]

pub mod resource {
    #[doc = "`annotation(\"example.dev/note\" = \"…\")`: metadata of the definition"]
    pub const annotation: () = ();
    #[doc = "`category = \"all\"`: groups of kinds for kubectl"]
    pub const category: () = ();
    #[doc = "`cluster`: where objects live"]
    pub const cluster: () = ();
    #[doc = "`column(spec.host)`, `column(\"Host\", spec.host, type, format, priority, description)`: a column of `kubectl get`; heading and `type` follow from the field. Of a struct, list or map it shows the JSON, of `spec.ports[].number` the first element\n\n`column(ready)`, `column(age)`: the status of the condition `Ready`, and the time since the creation; the field of that name where the kind has one\n\n`column(name = \"Ready\", path = \".status.conditions[?(@.type==\\\"Ready\\\")].status\")`: a column of a JSON path"]
    pub const column: () = ();
    #[doc = "`deprecated`, `deprecated = \"use v2\"`: API servers warn each client of this version"]
    pub const deprecated: () = ();
    #[doc = "`column(…, description = \"…\")`: text for clients that explain columns."]
    pub const description: () = ();
    #[doc = "`column(…, format = \"date\")`: format of the column."]
    pub const format: () = ();
    #[doc = "`group = \"example.dev\"`: API group: a domain that you own"]
    pub const group: () = ();
    #[doc = "`hub = v1::Website`: the hub, on each other version: group, names, scope and metadata of the definition are its"]
    pub const hub: () = ();
    #[doc = "`kind = \"Website\"`: kind"]
    pub const kind: () = ();
    #[doc = "`label(\"team\" = \"web\")`: metadata of the definition"]
    pub const label: () = ();
    #[doc = "`rule(\"…\", message = \"…\")`: text of the refusal, one line."]
    pub const message: () = ();
    #[doc = "`rule(\"…\", message_expression = \"…\")`: the text as a CEL expression."]
    pub const message_expression: () = ();
    #[doc = "`column(name = \"Host\", …)`: the heading."]
    pub const name: () = ();
    #[doc = "`namespaced`: where objects live"]
    pub const namespaced: () = ();
    #[doc = "`rule(\"…\", optional_old_self)`: a rule with `oldSelf` holds for new objects, too."]
    pub const optional_old_self: () = ();
    #[doc = "`column(path = \".spec.host\", …)`: a JSON path. `rule(\"…\", path = spec.host)`: the field that a refusal names."]
    pub const path: () = ();
    #[doc = "`plural = \"websites\"`: name in URLs"]
    pub const plural: () = ();
    #[doc = "`column(…, priority = 1)`: 0 is always shown, more with `-o wide`."]
    pub const priority: () = ();
    #[doc = "`rule(\"…\", reason = \"FieldValueInvalid\")`: reason of the refusal."]
    pub const reason: () = ();
    #[doc = "`rule(\"self.spec.min <= self.spec.max\", message = \"…\")`, `rule(\"…\", message_expression = \"…\", reason = \"FieldValueInvalid\", path = spec.min, optional_old_self)`: CEL rule of the whole object, type-checked at compile time down to the fields of the root; of the metadata it sees `name` and `generateName` only; `path` is the field that a refusal names; with `optional_old_self` a rule on `oldSelf` holds for new objects, too"]
    pub const rule: () = ();
    #[doc = "`scale(spec.replicas, status.replicas, selector = status.selector)`: scale subresource: two whole numbers and a text; `selector` may be left out. Also `spec = …`, `status = …`"]
    pub const scale: () = ();
    #[doc = "`selectable(spec.host)`: fields by which `list().fields(…)` and `kubectl get --field-selector` select: texts, whole numbers, booleans; at most 8"]
    pub const selectable: () = ();
    #[doc = "`scale(…, selector = status.selector)`: a selector as text."]
    pub const selector: () = ();
    #[doc = "`served = false`: API servers do not serve this version; its objects stay readable in the others"]
    pub const served: () = ();
    #[doc = "`short = \"ws\"`, `short = [\"ws\", \"w\"]`: short names"]
    pub const short: () = ();
    #[doc = "`singular = \"website\"`: name on kubectl's command line"]
    pub const singular: () = ();
    #[doc = "`scale(spec = spec.replicas, …)`: the wanted number."]
    pub const spec: () = ();
    #[doc = "`scale(status = status.replicas, …)`: the present number."]
    pub const status: () = ();
    #[doc = "`storage`: API servers store this version"]
    pub const storage: () = ();
    #[doc = "`version = \"v1\"`: the version; without the next four keys it is the only one, served and stored"]
    pub const version: () = ();
    #[doc = "`versions(v1beta1::Website)`: the other versions, on the hub"]
    pub const versions: () = ();
}

pub mod schema {
    #[doc = "`at_least_one_of(a, b)`: one or more of these fields are set"]
    pub const at_least_one_of: () = ();
    #[doc = "`at_most_one_of(a, b)`: none or one of these fields is set"]
    pub const at_most_one_of: () = ();
    #[doc = "`atomic`: a list, map or struct that server-side apply replaces as a whole\n\n`atomic`: as on a field"]
    pub const atomic: () = ();
    #[doc = "`column`, `column = \"Host\"`, `column(\"Host\", priority = 1, description = \"…\", type = \"date\", format = \"date\")`: a column of `kubectl get` in each kind that contains the type; heading (`name = \"Host\"`) and type follow from the field. They stand behind the columns of the kind, sorted by name in JSON; a column of the kind with the same heading replaces them, and below lists and maps they have no effect"]
    pub const column: () = ();
    #[doc = "`default = 3`: the server fills in the value; an expression of the field's type. Not beside `#[serde(default)]` or `#[serde(default = \"function\")]`, whose value is the default by itself"]
    pub const default: () = ();
    #[doc = "`column(…, description = \"…\")`: text for clients that explain columns."]
    pub const description: () = ();
    #[doc = "`docs = \"https://…\"`: remarks\n\n`docs = \"https://…\"`: remarks"]
    pub const docs: () = ();
    #[doc = "`each(pattern = \"^[a-z]+$\", length(max = 63))`: the same keys for the items of a list: `min`, `max`, `range`, `multiple_of`, `length`, `pattern`, `format`"]
    pub const each: () = ();
    #[doc = "`embedded`: a whole Kubernetes object, or a list or map of them: the server checks `apiVersion`, `kind` and `metadata`"]
    pub const embedded: () = ();
    #[doc = "`example = value`: a remark: a literal that is no value of the field does not compile, and `crd()` warns of an example that the schema or a rule refuses\n\n`example = value`: remarks"]
    pub const example: () = ();
    #[doc = "`exclusive_max = 1`: `exclusiveMinimum`, `exclusiveMaximum`"]
    pub const exclusive_max: () = ();
    #[doc = "`exclusive_min = 0`: `exclusiveMinimum`, `exclusiveMaximum`"]
    pub const exclusive_min: () = ();
    #[doc = "`extend(\"x-kubernetes-map-type\" = \"atomic\")`: any keyword, as JSON, that agrees with the type: another `type` or a format of another type does not compile, and is an error of `crd()` where an alias or a newtype hides the type\n\n`extend(\"x-name\" = 1)`: as on a field"]
    pub const extend: () = ();
    #[doc = "`format = \"uri\"`: `format`: one that API servers check, for values of the field's type\n\n`column(…, format = \"date\")`: format of the column."]
    pub const format: () = ();
    #[doc = "`full`: a Kubernetes type with all fields, list types and descriptions of upstream (feature `full-schemas`): the server checks and merges them. A `PodTemplateSpec` has some 330 KB, more than `kubectl apply` takes (`manifests --max-description 0` removes the descriptions), so without this key it is opaque"]
    pub const full: () = ();
    #[doc = "`immutable`: the rule `self == oldSelf`: a value that was set never changes"]
    pub const immutable: () = ();
    #[doc = "`int_or_string`: a number or a text, or a list or map of them, for a type that reads both; `IntOrString` itself needs no key"]
    pub const int_or_string: () = ();
    #[doc = "`items(min = 1, max = 10)`: `minItems`, `maxItems`"]
    pub const items: () = ();
    #[doc = "`length(min = 1, max = 63)`, `length(equal = 2)`: `minLength`, `maxLength`; of a list `minItems`, `maxItems`"]
    pub const length: () = ();
    #[doc = "`list(map, keys(name, port))`: `x-kubernetes-list-type: map`: server-side apply merges items with the same keys; fields of the item in Rust, checked by the compiler\n\n`list(set)`: a list without duplicates, merged value by value\n\n`list(atomic)`: a list, map or struct that server-side apply replaces as a whole"]
    pub const list: () = ();
    #[doc = "`map(atomic)`: a list, map or struct that server-side apply replaces as a whole\n\n`map(granular)`: a map that server-side apply merges key by key: the default\n\n`map(atomic)`, `map(granular)`: as on a field"]
    pub const map: () = ();
    #[doc = "`max = 10`: `minimum`, `maximum`; any expression\n\n`length(max = 63)`, `items(max = 10)`, `properties(max = 10)`: the largest size."]
    pub const max: () = ();
    #[doc = "`message = \"…\"`: text of the error: one line"]
    pub const message: () = ();
    #[doc = "`message_expression = \"'…' + self\"`: the text as a CEL expression"]
    pub const message_expression: () = ();
    #[doc = "`min = 1`: `minimum`, `maximum`; any expression\n\n`length(min = 1)`, `items(min = 1)`, `properties(min = 1)`: the smallest size."]
    pub const min: () = ();
    #[doc = "`multiple_of = 5`: `multipleOf`"]
    pub const multiple_of: () = ();
    #[doc = "`column(name = \"Host\", …)`: the heading."]
    pub const name: () = ();
    #[doc = "`nullable`: null is allowed where serde reads it by a function of yours"]
    pub const nullable: () = ();
    #[doc = "`one_of(a, b)`: exactly one of these fields is set"]
    pub const one_of: () = ();
    #[doc = "`opaque`: a value that is kept and not checked: any object, or a list or map of objects; the type's `Deserialize` tells which, under an alias, too. Of a type that reads texts, numbers or several forms, and of a field that a function reads: any value"]
    pub const opaque: () = ();
    #[doc = "`optional`: overrides the answer of serde; `optional` for a field that serde demands does not compile"]
    pub const optional: () = ();
    #[doc = "`optional_old_self`: a rule with `oldSelf` runs on creation, too; `oldSelf` is then optional"]
    pub const optional_old_self: () = ();
    #[doc = "`path = field`, `path = \".a.b\"`: the field that the error names: one of this type in Rust, or a JSON path (`\".a['b.c']\"`)"]
    pub const path: () = ();
    #[doc = "`pattern = \"^[a-z]+$\"`: `pattern`; a pattern that RE2 refuses does not compile, a pattern of more than 10 MiB when compiled is an error of `crd()`"]
    pub const pattern: () = ();
    #[doc = "`preserve`: fields that the schema does not list are kept; no place for `#[serde(deny_unknown_fields)]`\n\n`preserve`: fields that the type does not list are kept"]
    pub const preserve: () = ();
    #[doc = "`column(…, priority = 1)`: 0 is always shown, more with `-o wide`."]
    pub const priority: () = ();
    #[doc = "`properties(min = 1, max = 10)`: `minProperties`, `maxProperties` of a map\n\n`properties(min = 1)`: number of fields that are set"]
    pub const properties: () = ();
    #[doc = "`range(min = 1, max = 10)`: `minimum`, `maximum`; any expression"]
    pub const range: () = ();
    #[doc = "`reason = \"FieldValueInvalid\"`: or `FieldValueForbidden`, `FieldValueRequired`, `FieldValueDuplicate`"]
    pub const reason: () = ();
    #[doc = "`required`: overrides the answer of serde; `optional` for a field that serde demands does not compile"]
    pub const required: () = ();
    #[doc = "`rule(\"self > 0\", message = \"…\")`: a CEL rule, parsed and type-checked at compile time; repeatable\n\n`rule(\"self.min <= self.max\", message = \"…\")`: a rule of the whole value; names and types of its fields are checked"]
    pub const rule: () = ();
    #[doc = "`schema_with = path::to::function`: the schema that a `fn(&mut SchemaGenerator) -> Schema` returns"]
    pub const schema_with: () = ();
    #[doc = "`selectable`: a field selector (`kubectl get --field-selector spec.host=…`) in each kind that contains the type"]
    pub const selectable: () = ();
    #[doc = "`set`: a list without duplicates, merged value by value"]
    pub const set: () = ();
    #[doc = "`skip`: no part of the schema: the server drops it, so serde must read objects without it"]
    pub const skip: () = ();
    #[doc = "`title = \"…\"`: remarks\n\n`title = \"…\"`: remarks"]
    pub const title: () = ();
    #[doc = "`transform = function`: a `fn(&mut Schema)` has the last word\n\n`transform = function`: as on a field"]
    pub const transform: () = ();
    #[doc = "`with = Type`: the schema of another type; demanded where serde reads or writes by `with`, `deserialize_with` or `serialize_with`, whose values the derive cannot see"]
    pub const with: () = ();
}

pub mod controller {
    #[doc = "`can(get list Pod, create Event)`: further rights: see below"]
    pub const can: () = ();
    #[doc = "`cancel_superseded`: drops a running reconcile whose object has changed"]
    pub const cancel_superseded: () = ();
    #[doc = "`change_log(Summary)`: logs each write with the changed paths, and with `Full` the values as well: a variant of `ChangeLog`"]
    pub const change_log: () = ();
    #[doc = "`conditions(WebsiteCondition)`: keeps the conditions of an enum that derives `Conditions` in `status.conditions`, and `Ready`, `Reconciling` and `Stalled` computed from them and from the outcome of each reconcile; without an enum, `conditions`, from the outcome alone. The status has a field `conditions`"]
    pub const conditions: () = ();
    #[doc = "`debounce(quiet = \"500ms\", most = \"5s\")`: waits until no cause came for `quiet`, at most `most`, which is not shorter: a burst is one reconcile"]
    pub const debounce: () = ();
    #[doc = "`dependents(Children)`: graphs of children, by `#[derive(Dependents)]`, each by the name of its struct: watches and owns all of their kinds"]
    pub const dependents: () = ();
    #[doc = "`finalizer = \"example.dev/dns\"`: runs `Finalize::cleanup` before an object disappears"]
    pub const finalizer: () = ();
    #[doc = "`former_finalizer = \"example.dev/old\"`: removes a finalizer of an earlier version from objects that are deleted, without a clean-up; may stand several times"]
    pub const former_finalizer: () = ();
    #[doc = "`index(Website::BY_HOST)`: indexes that are built before the first reconcile, not at their first use"]
    pub const index: () = ();
    #[doc = "`loop_guard(most = 200, within = \"1m\", spacing = \"2s\")`: beyond it (at least 2) an object counts as reconciled endlessly, and is slowed down to one reconcile per `spacing`, at most half of `within`"]
    pub const loop_guard: () = ();
    #[doc = "`name = \"sites\"`: labels metrics, logs and Events"]
    pub const name: () = ();
    #[doc = "`on_change(spec.host = rehost)`: runs `async fn rehost(&self, &Website, &Context<Self>) -> Result<()>` before `reconcile` when the field differs from the last successful reconcile, and whenever that state is not known: at the first reconcile and after a restart. The field is a path as in `column(…)`: options on the way are passed, `spec.ports[].number` and `data[\"title\"]` are taken. A path of a function may stand for the method; the field's type is `PartialEq`\n\n`on_change(spec.host = rehost, condition = HostReady)`: behind a handler: the variant of `conditions(…)` that shows its outcome: true after a success and while the field stays, false with the error or with the reason of a wait. `Ready` follows if the variant is one of `ready(all(…))`. One of `stalled_on(…)` is true after a terminal failure, and goes after a success or a wait"]
    pub const on_change: () = ();
    #[doc = "`outcome_condition = \"Ready\"`: a condition of the status that says whether the last reconcile succeeded; not beside `conditions`, and of a type that no other controller of the kind keeps"]
    pub const outcome_condition: () = ();
    #[doc = "`owns(Deployment, Service)`: children: a change of one reconciles its owner; may be applied and read\n\n`owns(Pod, when = labels_changed())`: only changes of the children that the `Predicate` lets through; behind a single kind"]
    pub const owns: () = ();
    #[doc = "`rate_limit(most = 10, within = \"1h\")`: reconciles of one object at most so often"]
    pub const rate_limit: () = ();
    #[doc = "`reconcile_timeout = \"5m\"`: the deadline of one reconcile; `\"never\"` for none"]
    pub const reconcile_timeout: () = ();
    #[doc = "`report_every_failure`: calls `OnFailure::failed` at every failure"]
    pub const report_every_failure: () = ();
    #[doc = "`report_failures`: calls `OnFailure::failed` at the first failure and when its text changes"]
    pub const report_failures: () = ();
    #[doc = "`resync = \"1h\"`: reconciles every object once per period, at least 1 s; `\"never\"` for none"]
    pub const resync: () = ();
    #[doc = "`retry(at_most = 10, base = \"100ms\", cap = \"1m\", then_every = \"1h\")`: retries of a failed object (without `at_most` for ever), the first and the longest delay, the interval when retries are used up"]
    pub const retry: () = ();
    #[doc = "`task_per_object`: runs `ObjectTask::run` beside each object"]
    pub const task_per_object: () = ();
    #[doc = "`timer(every = \"1m\", name = \"probe\", initial_delay = \"5s\", idle = \"10s\")`: reconciles each object at intervals; `every` and `name` are required, and each timer has a name of its own; may stand several times"]
    pub const timer: () = ();
    #[doc = "`track_changes`: keeps the last reconciled state for `Context::changes`, at most 64 MiB"]
    pub const track_changes: () = ();
    #[doc = "`track_changes_within = 1048576`: the same, with at most so many bytes"]
    pub const track_changes_within: () = ();
    #[doc = "`watches(Secret, by = sites_of_secret)`: other objects, by a `fn(&Cached<Secret>) -> Vec<ObjectKey>`; may be read\n\n`watches(Secret, index = Website::BY_SECRET)`: other objects, by an index of the names that objects mention\n\n`watches(Secret, by = sites_of_secret, when = labels_changed())`: only changes of the watched kind that the `Predicate` lets through; behind `by` or `index`"]
    pub const watches: () = ();
    #[doc = "`when = generation_changed()`: which changes of the object count: a `Predicate`"]
    pub const when: () = ();
    #[doc = "`with = Self::settings`: a `fn(ControllerBuilder<Self>) -> ControllerBuilder<Self>`, called last: for settings that have no literal, such as triggers, polls and other clusters"]
    pub const with: () = ();
    #[doc = "`workers = 8`: objects reconciled at once, 1 to 65536"]
    pub const workers: () = ();
}

pub mod conditions {
    #[doc = "`all(ConfigApplied, Available)`: in `ready(…)`: the root is true when all of them are true, false when one is false, else unknown; before a reconcile has set one, it is unknown"]
    pub const all: () = ();
    #[doc = "`ready(all(…), stalled_on(…))`: the roles of the variants; a variant without a role is kept in the status and has no influence on the root"]
    pub const ready: () = ();
    #[doc = "`root = \"CertificateReady\"`: the root of a further controller of the same kind. `Reconciling`, `Stalled`, `Paused` and `status.observedGeneration` are kept by the controller whose root is `Ready`"]
    pub const root: () = ();
    #[doc = "`stalled_on(InvalidSpec)`: in `ready(…)`: while one of them is true, only a change of the object helps: the root is false and `Stalled` true. Such a condition is present only while it is true: it goes when a reconcile ends without an error and without setting it"]
    pub const stalled_on: () = ();
}

pub mod convert {
    #[doc = "`from_hub = function`: the same from the hub: `fn(&v1::CronJobSpec, &mut CronJobSpec)`\n\n`from_hub = function`: functions from the one type to the other, which may return a `Result<T, E>`; both are named"]
    pub const from_hub: () = ();
    #[doc = "`hub = v1::CronJobSpec`: the type of the hub"]
    pub const hub: () = ();
    #[doc = "`hub_only(time_zone, suspend = false)`: fields of the hub alone, with the value that they get; variants of the hub alone, with the value of this version: `hub_only(Queue = Self::Allow)`\n\n`hub_only(queue_length)`: fields of the variant in the hub alone"]
    pub const hub_only: () = ();
    #[doc = "`rename = starting_deadline_seconds`: name of the field in the hub\n\n`rename = Forbid`: name of the variant in the hub"]
    pub const rename: () = ();
    #[doc = "`to_hub = function`: completes a converted struct, for fields that are split or joined: `fn(&CronJobSpec, &mut v1::CronJobSpec)`, which may return a `Result<(), E>`\n\n`to_hub = function`: functions from the one type to the other, which may return a `Result<T, E>`; both are named"]
    pub const to_hub: () = ();
    #[doc = "`version_only`, `version_only = value`: a field of this version alone, with the value that it gets from the hub\n\n`version_only = v1::Policy::Allow`: a variant of this version alone, with the value of the hub that stands for it"]
    pub const version_only: () = ();
}

pub mod dependents {
    #[doc = "`adopt_if = may_adopt`: a `fn(&K) -> bool` for an object of that name that is not a child yet: `true` makes it one"]
    pub const adopt_if: () = ();
    #[doc = "`after(config, app)`: is applied when these are ready, and removed before them; one that is not wanted or not served holds up nothing"]
    pub const after: () = ();
    #[doc = "`by = Sites`: the controller; `#[controller(…, dependents(Children))]` names the graph in turn"]
    pub const by: () = ();
    #[doc = "`external`: the type is an `External`, a resource outside of the cluster: the function returns its driver, `fn database(&self) -> &Externals<Databases>`; the finalizer is that of the `External`"]
    pub const external: () = ();
    #[doc = "`optional`: the kind may be missing: the operator works without it, and applies the child when the kind appears"]
    pub const optional: () = ();
    #[doc = "`ready = has_leader`: a `fn(&K)`, of an external resource a `fn(&ExternalState<H>)`, that returns a `bool` or a `Readiness`; an object that is being deleted, or whose status is of an earlier generation, is not ready whatever it returns"]
    pub const ready: () = ();
    #[doc = "`retired(Ingress, Endpoints)`: kinds of children that earlier versions of the graph had, and that are deleted where they are left; they may be missing"]
    pub const retired: () = ();
    #[doc = "`rollout`: the children of a `Vec` get a change one after the other: the function returns `RolloutChildren<Self, K>`, names, a state and rules"]
    pub const rollout: () = ();
    #[doc = "`scope = cluster`: children that no owner reference reaches: cluster-scoped ones, and those in the namespaces that they name; they carry a mark of their owner, and a finalizer deletes them with it"]
    pub const scope: () = ();
    #[doc = "`when = Website::is_exposed`: a `fn(&Website) -> bool`; false deletes the child"]
    pub const when: () = ();
}

pub mod projection {
    #[doc = "`annotation = \"example.dev/note\"`: one label or annotation; an `Option<String>`, where the struct skips the others"]
    pub const annotation: () = ();
    #[doc = "`default`: the type's default when it is absent or null"]
    pub const default: () = ();
    #[doc = "`label = \"app\"`: one label or annotation; an `Option<String>`, where the struct skips the others"]
    pub const label: () = ();
    #[doc = "`of = Pod`: the kind"]
    pub const of: () = ();
    #[doc = "`path = spec.node_name`, `path = \"spec.nodeName\"`: where the value lies, by Rust fields or by names of the JSON; through objects only"]
    pub const path: () = ();
    #[doc = "`skip(labels, annotations)`: parts of the metadata that are not decoded; `Cached::metadata` still has the labels"]
    pub const skip: () = ();
}
