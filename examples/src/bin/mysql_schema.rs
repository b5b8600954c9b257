//! Schemas of a database server outside of the cluster: a schema for each `MySqlSchema`, never
//! created twice and never left over, wherever the operator crashes.
//!
//! ```text
//! cargo run --bin mysql_schema
//! ```
//!
//! The program serves a cluster and a database server, crashes the operator between the creation of
//! a schema and the record of that creation, prints the rest of the story, and ends without a
//! signal.

use std::collections::BTreeMap;
use std::fmt;
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass::api::WaitCondition;
use windlass::controller::Failure;
use windlass::error::BoxError;
use windlass::external::{
    CreateError, CreateOutcome, External, ExternalController, ExternalObject, ExternalState,
    Externals, ObservedResource,
};
use windlass::local::LocalCluster;
use windlass::prelude::*;

const HELP: &str = "\
Schemas of a database server outside of the cluster: a story of an operator that crashes.

Serves a cluster and a database server of its own, crashes its operator between the creation of a schema and
the record of it, prints the rest of the story, and ends by itself. It needs no cluster, and takes no arguments.

Usage: mysql_schema [--help]";
const PAUSE: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_secs(60);

/// A schema on the database server, under the name of the object.
#[derive(CustomResource, Clone, Debug)]
#[resource(group = "example.dev", version = "v1", namespaced)]
pub struct MySqlSchema {
    metadata: ObjectMeta,
    spec: MySqlSchemaSpec,
    status: Option<MySqlSchemaStatus>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Schema)]
struct MySqlSchemaSpec {
    /// Default: the one of the server, which is filled in once it is known.
    charset: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, Schema)]
struct MySqlSchemaStatus {
    conditions: Conditions,
    schema: Option<String>,
}

/// A schema as the server has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    charset: String,
    /// Token of its creation.
    comment: String,
}

/// The fate of a statement whose answer never comes.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(test), expect(dead_code, reason = "tests alone lose answers"))]
enum Lost {
    Before,
    After,
}

/// The server: independent of Kubernetes, in memory.
#[derive(Clone, Debug, Default)]
pub struct MySql {
    state: Arc<Mutex<MySqlState>>,
}

#[derive(Debug, Default)]
struct MySqlState {
    schemas: BTreeMap<String, Row>,
    statements: Vec<String>,
    /// The next statement that begins so gets no answer.
    loses: Option<(&'static str, Lost)>,
}

impl MySql {
    fn with<T>(&self, action: impl FnOnce(&mut MySqlState) -> T) -> T {
        action(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Executes a statement. The values of its `?` are sent apart from the text, and never become a
    /// part of it.
    async fn execute<T>(
        &self,
        statement: String,
        _values: &[&str],
        effect: impl FnOnce(&mut BTreeMap<String, Row>) -> T,
    ) -> T {
        let lost = self.with(|state| {
            let lost = state.loses.take_if(|(start, _)| statement.starts_with(*start));
            state.statements.push(statement);
            lost
        });
        match lost {
            None => self.with(|state| effect(&mut state.schemas)),
            Some((_, Lost::Before)) => pending().await,
            Some((_, Lost::After)) => {
                self.with(|state| effect(&mut state.schemas));
                pending().await
            }
        }
    }

    fn statements(&self, start: &str) -> usize {
        self.with(|state| state.statements.iter().filter(|it| it.starts_with(start)).count())
    }

    fn schemas(&self) -> usize {
        self.with(|state| state.schemas.len())
    }

    fn loses(&self, start: &'static str, lost: Lost) {
        self.with(|state| state.loses = Some((start, lost)));
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "character set {}", self.charset)
    }
}

/// The four calls that `Externals` needs to know, and a search.
struct Schemas {
    mysql: MySql,
}

impl Schemas {
    /// Returns the character set, which becomes a part of statements.
    fn charset<'a>(&self, schema: &'a MySqlSchema) -> Result<&'a str> {
        let charset = schema.spec.charset.as_deref().unwrap_or("utf8mb4");
        if charset.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_') && !charset.is_empty() {
            return Ok(charset);
        }
        let text = format!("{charset:?} is not a character set: use letters, digits and `_`");
        Err(Failure::terminal(text))
    }
}

/// Returns the name of a schema for a statement. A name comes from an annotation, which may hold
/// any text.
fn identifier(name: &str) -> Result<String> {
    let is_part = |c: u8| c.is_ascii_alphanumeric() || b"_-.".contains(&c);
    if (1..=64).contains(&name.len()) && name.bytes().all(is_part) {
        return Ok(format!("`{name}`"));
    }
    let text = format!(
        "{name:?} is not a name of a schema: use up to 64 letters, digits, `_`, `-` and `.`"
    );
    Err(Failure::terminal(text))
}

/// Returns a text for a statement in which no value can be bound.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

impl External for Schemas {
    type Object = MySqlSchema;
    type Handle = Row;
    const FINALIZER: &'static str = "example.dev/mysql-schema";

    async fn observe(
        &self,
        schema: &ExternalObject<'_, MySqlSchema>,
        id: &str,
    ) -> Result<ObservedResource<Row>> {
        let select = "SELECT * FROM information_schema.schemata WHERE name = ?".to_owned();
        let row = self.mysql.execute(select, &[id], |all| all.get(id).cloned()).await;
        let Some(row) = row else { return Ok(ObservedResource::Missing) };
        match &schema.spec.charset {
            Some(wanted) if *wanted != row.charset => {
                let difference = format!("{row} instead of {wanted}");
                Ok(ObservedResource::Drifted(row, difference))
            }
            _ => Ok(ObservedResource::UpToDate(row)),
        }
    }

    async fn create(
        &self,
        schema: &ExternalObject<'_, MySqlSchema>,
        token: &str,
    ) -> Result<String, CreateError> {
        let name = schema.name().to_owned();
        let quoted = identifier(&name).map_err(CreateError::refused)?;
        let charset = self.charset(schema).map_err(CreateError::refused)?.to_owned();
        let comment = literal(token);
        let create = format!("CREATE DATABASE {quoted} CHARACTER SET {charset} COMMENT {comment}");
        let created = self.mysql.execute(create, &[], |all| match all.get(&name) {
            // An earlier call with the token has made the schema, and the answer was lost.
            Some(row) if row.comment == token => Ok(name),
            // An error that proves that nothing was created: the schema belongs to another owner.
            Some(_) => Err(format!("a schema {name} exists; import it, or choose another name")),
            None => {
                all.insert(name.clone(), Row { charset, comment: token.to_owned() });
                Ok(name)
            }
        });
        created.await.map_err(CreateError::refused)
    }

    async fn find_created(
        &self,
        schema: &ExternalObject<'_, MySqlSchema>,
        token: &str,
    ) -> Result<CreateOutcome> {
        let name = schema.name();
        let select = "SELECT * FROM information_schema.schemata WHERE comment = ?".to_owned();
        let is_there =
            |all: &mut BTreeMap<String, Row>| all.get(name).is_some_and(|row| row.comment == token);
        Ok(match self.mysql.execute(select, &[token], is_there).await {
            true => CreateOutcome::Created(name.to_owned()),
            false => CreateOutcome::Missing,
        })
    }

    async fn update(
        &self,
        schema: &ExternalObject<'_, MySqlSchema>,
        id: &str,
        _: &Row,
    ) -> Result<()> {
        let (quoted, charset) = (identifier(id)?, self.charset(schema)?);
        println!("{}: the schema gets character set {charset}", schema.key());
        let alter = format!("ALTER DATABASE {quoted} CHARACTER SET {charset}");
        self.mysql
            .execute(alter, &[], |all| {
                if let Some(row) = all.get_mut(id) {
                    row.charset = charset.to_owned();
                }
            })
            .await;
        Ok(())
    }

    async fn delete(
        &self,
        schema: &ExternalObject<'_, MySqlSchema>,
        id: &str,
        row: &Row,
    ) -> Result<()> {
        // The author of an object names any schema in the annotation: only the object's own schema
        // is dropped.
        if !row.comment.starts_with(&format!("{}-", schema.uid())) {
            let text = format!(
                "schema {id:?} was not created for this object: set the policy no-delete to keep it, or drop it by hand"
            );
            return Err(Failure::terminal(text));
        }
        let drop_it = format!("DROP DATABASE IF EXISTS {}", identifier(id)?);
        self.mysql.execute(drop_it, &[], |all| drop(all.remove(id))).await;
        Ok(())
    }

    fn late_initialize(&self, _: &ExternalObject<'_, MySqlSchema>, row: &Row) -> Option<Value> {
        Some(json!({ "charset": row.charset }))
    }

    async fn report(
        &self,
        state: &ExternalState<Row>,
        cx: &Context<ExternalController<Self>>,
    ) -> Result<()> {
        cx.patch_status(json!({ "schema": state.id })).await?;
        Ok(())
    }
}

/// Returns the operator, for `main` and for tests.
fn operator(client: Client, mysql: MySql) -> Manager {
    let schemas = Externals::new(Schemas { mysql }).poll_every(Duration::from_secs(2));
    Manager::new(client)
        .install::<MySqlSchema>()
        .controller_configured(ExternalController::new(schemas), |builder| {
            builder.outcome_condition("Ready")
        })
}

/// Waits until the server has received such a statement, with a deadline.
async fn until_stated(mysql: &MySql, statement: &str) -> std::result::Result<(), BoxError> {
    let stated = async {
        while mysql.statements(statement) == 0 {
            tokio::time::sleep(PAUSE).await;
        }
    };
    let late = |_| format!("the operator sent no {statement} within {PATIENCE:?}");
    Ok(tokio::time::timeout(PATIENCE, stated).await.map_err(late)?)
}

#[tokio::main]
async fn main() -> std::result::Result<(), BoxError> {
    match std::env::args().nth(1).as_deref() {
        None => {}
        Some("-h" | "--help") => {
            println!("{HELP}");
            return Ok(());
        }
        Some(other) => return Err(format!("unknown argument {other}: see --help").into()),
    }
    let cluster = LocalCluster::start("mysql-schema").await?;
    let client = cluster.client();
    let shop = object!(Namespace { metadata: { name: "shop" } });
    client.all().create(&shop).await?;
    let mysql = MySql::default();
    let start = || {
        let manager = operator(client.clone(), mysql.clone());
        manager.without_leader_election().without_health().without_metrics().start()
    };

    // The server creates the schema, and the operator does not live to receive the answer.
    mysql.loses("CREATE", Lost::After);
    let running = start();
    let schemas = client.namespace::<MySqlSchema>("shop");
    let orders = MySqlSchema::new("orders", MySqlSchemaSpec::default());
    // The operator installs the kind first.
    let created = async {
        loop {
            match schemas.create(&orders).await {
                Err(error) if error.code() == Some(404) => tokio::time::sleep(PAUSE).await,
                created => break created,
            }
        }
    };
    let orders = tokio::time::timeout(PATIENCE, created).await??;
    until_stated(&mysql, "CREATE").await?;
    drop(running);
    println!("the operator crashed; schemas: {}", mysql.schemas());

    let running = start();
    schemas.wait_for("orders", &WaitCondition::is("Ready", "True"), PATIENCE).await?;
    println!(
        "another one found it; schemas: {}, creations: {}",
        mysql.schemas(),
        mysql.statements("CREATE")
    );

    mysql.with(|state| state.schemas.values_mut().for_each(|row| row.charset = "latin1".into()));
    until_stated(&mysql, "ALTER").await?;
    schemas.delete("orders").await?;
    schemas.wait_deleted("orders", orders.uid(), PATIENCE).await?;
    println!("schemas: {}", mysql.schemas());
    running.stop();
    running.join().await?;
    println!("done");
    Ok(())
}

#[cfg(test)]
mod tests {
    use windlass::api::{Api, Patch};
    use windlass::external::{EXTERNAL_NAME, EXTERNAL_POLICY};
    use windlass::testing::{RunningOperator, TestCluster, check};

    use super::*;

    struct World {
        cluster: TestCluster,
        mysql: MySql,
    }

    impl World {
        async fn start() -> Self {
            let cluster = TestCluster::builder().embedded().start().await;
            cluster.install::<MySqlSchema>().await;
            Self { cluster, mysql: MySql::default() }
        }

        fn run(&self) -> RunningOperator {
            self.cluster.spawn(operator(self.cluster.client(), self.mysql.clone()))
        }

        fn schemas(&self) -> Api<MySqlSchema> {
            self.cluster.client().namespace(self.cluster.namespace())
        }

        async fn create(&self, annotations: Value) {
            let schema = json!({
                "metadata": { "name": "orders", "annotations": annotations },
                "spec": { "charset": "utf8mb4" },
            });
            self.schemas().create(&serde_json::from_value(schema).unwrap()).await.unwrap();
        }

        async fn until(&self, met: impl Fn() -> bool) {
            let clock = self.cluster.client().environment().clock.clone();
            let met = async {
                while !met() {
                    clock.sleep(PAUSE).await;
                }
            };
            clock.timeout(PATIENCE, met).await.unwrap();
        }

        async fn until_ready(&self) {
            let ready = WaitCondition::is("Ready", "True");
            self.schemas().wait_for("orders", &ready, 5 * PATIENCE).await.unwrap();
        }

        async fn delete(&self) {
            let uid = self.schemas().get("orders").await.unwrap().uid().to_owned();
            self.schemas().delete("orders").await.unwrap();
            self.schemas().wait_deleted("orders", &uid, 5 * PATIENCE).await.unwrap();
        }
    }

    /// A statement, its fate, and the schemas that are there after the crash.
    const CRASHES: [(&str, Lost, usize); 3] = [
        // Recorded as pending, and not created.
        ("CREATE", Lost::Before, 0),
        // Created, and not recorded.
        ("CREATE", Lost::After, 1),
        // Recorded, and not in the status: the observation behind the record.
        ("SELECT", Lost::Before, 1),
    ];

    #[tokio::test(start_paused = true)]
    async fn no_crash_in_a_creation_makes_a_second_schema_or_leaves_one() {
        for (statement, lost, left) in CRASHES {
            let world = World::start().await;
            world.mysql.loses(statement, lost);
            let running = world.run();
            world.create(json!({})).await;
            world.until(|| world.mysql.statements(statement) > 0).await;
            drop(running);
            assert_eq!(world.mysql.schemas(), left, "{statement} {lost:?}");
            let status = world.schemas().get("orders").await.unwrap().status;
            assert!(status.is_none_or(|status| status.schema.is_none()));

            let running = world.run();
            world.until_ready().await;
            assert_eq!(world.mysql.schemas(), 1);
            let creations = if left == 0 { 2 } else { 1 };
            assert_eq!(world.mysql.statements("CREATE"), creations, "{statement} {lost:?}");
            world.delete().await;
            assert_eq!(world.mysql.schemas(), 0);
            running.stop().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn no_crash_in_a_deletion_leaves_a_schema() {
        for lost in [Lost::Before, Lost::After] {
            let world = World::start().await;
            let running = world.run();
            world.create(json!({})).await;
            world.until_ready().await;
            world.mysql.loses("DROP", lost);
            world.schemas().delete("orders").await.unwrap();
            world.until(|| world.mysql.statements("DROP") > 0).await;
            drop(running);
            let left = world.schemas().get("orders").await.unwrap();
            assert!(left.is_terminating(), "{lost:?}");
            let running = world.run();
            world.schemas().wait_deleted("orders", left.uid(), 5 * PATIENCE).await.unwrap();
            assert_eq!((world.mysql.schemas(), world.mysql.statements("CREATE")), (0, 1));
            running.stop().await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_schema_of_somebody_else_is_imported_or_left_alone() {
        let world = World::start().await;
        let theirs = Row { charset: "utf8mb4".to_owned(), comment: String::new() };
        world.mysql.with(|state| state.schemas.insert("orders".to_owned(), theirs.clone()));
        let running = world.run();
        world.create(json!({})).await;
        world.until(|| world.mysql.statements("CREATE") > 0).await;
        let refused = WaitCondition::is("Ready", "False");
        world.schemas().wait_for("orders", &refused, PATIENCE).await.unwrap();
        assert_eq!(world.mysql.with(|state| state.schemas["orders"].clone()), theirs);

        let import = json!({ EXTERNAL_NAME: "orders", EXTERNAL_POLICY: "no-delete" });
        let import = Patch::Merge(json!({ "metadata": { "annotations": import } }));
        world.schemas().patch("orders", import).await.unwrap();
        world.until_ready().await;
        world.delete().await;
        assert_eq!((world.mysql.schemas(), world.mysql.statements("DROP")), (1, 0));
        running.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn the_schema_of_somebody_else_is_not_dropped_and_no_name_is_a_statement() {
        let world = World::start().await;
        let theirs = Row { charset: "utf8mb4".to_owned(), comment: String::new() };
        world.mysql.with(|state| state.schemas.insert("theirs".to_owned(), theirs));
        let running = world.run();
        world.create(json!({ EXTERNAL_NAME: "theirs" })).await;
        world.until_ready().await;
        world.schemas().delete("orders").await.unwrap();
        let refused = WaitCondition::is("Ready", "False");
        world.schemas().wait_for("orders", &refused, PATIENCE).await.unwrap();
        assert_eq!((world.mysql.schemas(), world.mysql.statements("DROP")), (1, 0));
        assert!(identifier("theirs; DROP DATABASE orders").is_err());
        assert!(identifier("a`b").is_err());
        assert_eq!(literal("a'b\\"), "'a''b\\\\'");
        running.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_by_hand_is_repaired_unless_the_object_only_observes() {
        let world = World::start().await;
        let running = world.run();
        world.create(json!({})).await;
        world.until_ready().await;
        let by_hand = || {
            let mut changed = |row: &mut Row| row.charset = "latin1".to_owned();
            world.mysql.with(|state| state.schemas.values_mut().for_each(&mut changed));
        };
        by_hand();
        world.until(|| world.mysql.statements("ALTER") == 1).await;
        let observe = json!({ "metadata": { "annotations": { EXTERNAL_POLICY: "observe-only" } } });
        world.schemas().patch("orders", Patch::Merge(observe)).await.unwrap();
        running.settled().await;
        by_hand();
        let seen = world.mysql.statements("SELECT");
        world.until(|| world.mysql.statements("SELECT") > seen + 3).await;
        assert_eq!(world.mysql.statements("ALTER"), 1);
        running.stop().await;
    }

    #[tokio::test]
    async fn serde_the_definition_and_an_api_server_agree() {
        let report = check::<MySqlSchema>().await;
        assert!(report.unchecked().is_empty(), "{report}");
    }
}
