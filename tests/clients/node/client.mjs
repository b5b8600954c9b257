// The Node client against the server of $KUBECONFIG: one function per case.
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import * as k8s from '@kubernetes/client-node';

const namespace = 'node';
const WAIT = 20_000;

const config = new k8s.KubeConfig();
config.loadFromFile(process.env.KUBECONFIG);
const core = config.makeApiClient(k8s.CoreV1Api);

/** Returns the body of a ConfigMap. */
const configMap = (name, data, labels) => ({ metadata: { name, labels }, data });

/** Creates a ConfigMap. */
const create = (name, data, labels) =>
  core.createNamespacedConfigMap({ namespace, body: configMap(name, data, labels) });

/** Fails unless the server refuses the call with this status and reason. */
async function refused(code, reason, call) {
  const error = await call.then(() => undefined, (failure) => failure);
  assert.equal(error?.code, code);
  assert.equal(JSON.parse(error.body).reason, reason);
}

/** Waits until `attempt` returns a value. */
async function eventually(what, attempt) {
  const end = Date.now() + WAIT;
  for (;;) {
    const value = await attempt();
    if (value) return value;
    assert.ok(Date.now() < end, `no ${what} in time`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Returns all that a stream brings, as text. */
function collect(stream) {
  const parts = [];
  stream.on('data', (part) => parts.push(part));
  return () => Buffer.concat(parts).toString();
}

const cases = {
  async objectsAreCreatedReadReplacedAndDeleted() {
    const made = await create('crud', { a: '1' });
    await refused(409, 'AlreadyExists', create('crud'));
    const read = await core.readNamespacedConfigMap({ name: 'crud', namespace });
    assert.equal(read.metadata.uid, made.metadata.uid);
    assert.equal(read.metadata.creationTimestamp.getTime(), made.metadata.creationTimestamp.getTime());
    read.data.a = '2';
    const replaced = await core.replaceNamespacedConfigMap({ name: 'crud', namespace, body: read });
    assert.deepEqual(replaced.data, { a: '2' });
    await refused(409, 'Conflict', core.replaceNamespacedConfigMap({ name: 'crud', namespace, body: read }));
    await core.deleteNamespacedConfigMap({ name: 'crud', namespace });
    await refused(404, 'NotFound', core.readNamespacedConfigMap({ name: 'crud', namespace }));
    await refused(422, 'Invalid', create('A B'));
  },

  async patchesOfFourKindsAreRead() {
    await create('patched', { a: '1', b: '1' });
    const patched = async (strategy, body, more) => {
      const options = k8s.setHeaderOptions('Content-Type', strategy);
      const request = { name: 'patched', namespace, body, ...more };
      return (await core.patchNamespacedConfigMap(request, options)).data;
    };
    const { PatchStrategy: kind } = k8s;
    assert.deepEqual(await patched(kind.MergePatch, { data: { a: null, c: '3' } }), { b: '1', c: '3' });
    const operations = [{ op: 'replace', path: '/data/c', value: '4' }];
    assert.deepEqual(await patched(kind.JsonPatch, operations), { b: '1', c: '4' });
    assert.deepEqual(await patched(kind.StrategicMergePatch, { data: { c: null } }), { b: '1' });
    const intent = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'patched' }, data: { e: '6' } };
    const applied = await patched(kind.ServerSideApply, intent, { fieldManager: 'node' });
    assert.deepEqual(applied, { b: '1', e: '6' });
  },

  async listsComeInPagesAndBySelectors() {
    for (let number = 0; number < 5; number += 1) {
      await create(`page-${number}`, {}, { half: String(number % 2), paged: 'yes' });
    }
    const names = [];
    let token;
    do {
      const page = await core.listNamespacedConfigMap(
        { namespace, labelSelector: 'paged', limit: 2, _continue: token });
      names.push(...page.items.map((item) => item.metadata.name));
      token = page.metadata._continue;
    } while (token);
    assert.deepEqual(names, ['page-0', 'page-1', 'page-2', 'page-3', 'page-4']);
    const half = await core.listNamespacedConfigMap({ namespace, labelSelector: 'half=1,paged in (yes,no)' });
    assert.deepEqual(half.items.map((item) => item.metadata.name), ['page-1', 'page-3']);
  },

  async aWatchGoesOnFromAVersion() {
    const begin = (await core.listNamespacedConfigMap({ namespace })).metadata.resourceVersion;
    await create('watched', { a: '1' }, { w: '1' });
    await core.deleteNamespacedConfigMap({ name: 'watched', namespace });
    const seen = [];
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const query = { resourceVersion: begin, labelSelector: 'w=1' };
    const request = await new k8s.Watch(config).watch(
      path, query, (type, object) => seen.push([type, object.data?.a]), () => {});
    await eventually('event', () => seen.length === 2);
    request.abort();
    assert.deepEqual(seen, [['ADDED', '1'], ['DELETED', '1']]);
  },

  async anInformerFollowsAllWrites() {
    const list = () => core.listNamespacedConfigMap({ namespace, labelSelector: 'informed' });
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const informer = k8s.makeInformer(config, path, list, 'informed');
    const calls = [];
    for (const event of ['add', 'update', 'delete']) {
      informer.on(event, (object) => calls.push(`${event} ${object.metadata.name}`));
    }
    await create('informed-0', { a: '1' }, { informed: 'yes' });
    await informer.start();
    await create('informed-1', { a: '1' }, { informed: 'yes' });
    await core.patchNamespacedConfigMap(
      { name: 'informed-1', namespace, body: { data: { a: '2' } } },
      k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.MergePatch));
    await core.deleteNamespacedConfigMap({ name: 'informed-0', namespace });
    await eventually('end of the informer', () => calls.length >= 4);
    assert.deepEqual(calls, ['add informed-0', 'add informed-1', 'update informed-1', 'delete informed-0']);
    assert.equal(informer.get('informed-1', namespace).data.a, '2');
    await informer.stop();
  },

  async customResourcesAreServedAfterTheirDefinition() {
    const extensions = config.makeApiClient(k8s.ApiextensionsV1Api);
    const group = 'node.example';
    // The generated type names the field `default` so.
    const spec = { type: 'object', properties: { text: { type: 'string' }, n: { type: 'integer', _default: 2 } } };
    const version = {
      name: 'v1', served: true, storage: true, subresources: { status: {} },
      schema: { openAPIV3Schema: { type: 'object', properties: { spec } } },
    };
    await extensions.createCustomResourceDefinition({ body: {
      apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition',
      metadata: { name: `notes.${group}` },
      spec: { group, scope: 'Namespaced', names: { plural: 'notes', kind: 'Note' }, versions: [version] },
    } });
    await eventually('established definition', async () => {
      const read = await extensions.readCustomResourceDefinition({ name: `notes.${group}` });
      return read.status?.conditions?.some((one) => one.type === 'Established' && one.status === 'True');
    });
    const objects = k8s.KubernetesObjectApi.makeApiClient(config);
    const note = {
      apiVersion: `${group}/v1`, kind: 'Note', metadata: { name: 'n', namespace }, spec: { text: 'x' },
    };
    assert.deepEqual((await objects.create(note)).spec, { text: 'x', n: 2 });
    await refused(422, 'Invalid', objects.create({ ...note, metadata: { name: 'm', namespace }, spec: { n: 'x' } }));
    await objects.delete(note);
    await refused(404, 'NotFound', objects.read(note));
  },

  async podsAreReachedOverWebSockets() {
    const annotations = { 'windlass.dev/log': 'one\ntwo\n' };
    const spec = { containers: [{ name: 'c', image: 'i' }] };
    await core.createNamespacedPod({ namespace, body: { metadata: { name: 'p', annotations }, spec } });
    await eventually('running Pod', async () => {
      const pod = await core.readNamespacedPod({ name: 'p', namespace });
      return pod.status.phase === 'Running';
    });
    assert.equal(await core.readNamespacedPodLog({ name: 'p', namespace, tailLines: 1 }), 'two\n');
    const exec = new k8s.Exec(config);
    const run = async (command, input) => {
      const [out, failures] = [new PassThrough(), new PassThrough()];
      const text = collect(out);
      const status = await new Promise((resolve, reject) => {
        const stdin = input === undefined ? null : PassThrough.from([input]);
        exec.exec(namespace, 'p', 'c', command, out, failures, stdin, false, resolve).catch(reject);
      });
      return [status.status, text()];
    };
    assert.deepEqual(await run(['echo', 'a b']), ['Success', 'echo a b\n']);
    assert.deepEqual(await run(['cat'], 'input\n'), ['Success', 'cat\ninput\n']);
  },

  async portsAreForwardedOverWebSockets() {
    const [out, failures, input] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const text = collect(out);
    const forward = new k8s.PortForward(config, true);
    const socket = await forward.portForward(namespace, 'p', [80], out, failures, input);
    input.write('hello');
    await eventually('echo', () => text() === 'hello');
    socket.close();
  },
};

const names = Object.keys(cases);
let failed = 0;
await core.createNamespace({ body: { metadata: { name: namespace } } });
for (const name of names) {
  try {
    await cases[name]();
  } catch (error) {
    failed += 1;
    console.log(`failed: node: ${name}`);
    console.log(error);
  }
}
console.log(`node: ${names.length - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
