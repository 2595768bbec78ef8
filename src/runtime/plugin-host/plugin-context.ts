import { hkdfSync } from "node:crypto";
import { mkdirSync, constants } from "node:fs";
import { join, resolve, sep } from "node:path";
import { wallClock } from "../../lib/time/wall-clock.ts";
import type { DeclaredNeeds } from "../../config/sections/plugin-needs.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import { fail } from "../../model/error.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type {
  Context,
  OwnSocket,
  StreamedRequestInit,
  StreamedResponse,
} from "../../plugin/context.ts";
import { createPluginEvent } from "../../model/plugin-event.ts";
import { matchesPattern } from "../../catalog/model-names.ts";
import { markAsHookFailure } from "../../pipeline/hooks/hook-guard.ts";
import { runSubrequest } from "../../pipeline/pipeline.ts";
import { openCall } from "../../pipeline/open-call.ts";
import type { Generation } from "../../pipeline/generation.ts";
import { createJobCalls } from "./job-calls.ts";
import { createJobLines } from "./job-lines.ts";
import { createProviderClient } from "./provider-client.ts";
import { StreamedRequests } from "./streamed-fetch.ts";
import type { ContextServices, Services } from "../services.ts";
import type { LocalEndpoint } from "../http/local-endpoint.ts";
import type { EffectivePolicy, ModelInfo } from "../../model/facts.ts";
import type { Usage } from "../../model/usage.ts";
import { calculateBill, isExact } from "../../money/price.ts";
import { open, realpath } from "node:fs/promises";

// Creates the context of a plugin.
/**
 * Returns the cost of a usage at the model's price at time `at`, in nano-dollars. Returns null if
 * the price is unknown or lacks an item of the usage.
 */
function quoteCost(
  { info, policy }: { readonly info: ModelInfo; readonly policy: EffectivePolicy },
  usage: Usage,
  at: number,
): bigint | null {
  const { region } = policy;
  // If there are several regions, the region that will serve the call is unknown.
  const facts = region?.length === 1 ? { region: region[0] } : {};
  const bill = info.price && calculateBill(usage, info.price, { at, pricingAttributes: facts });
  return bill && isExact(bill) ? bill.nano : null;
}

export interface ContextOptions {
  /** Path in gateway.yaml. */
  id: string;
  scope: LifetimeScope;
  /**
   * The available services. A store is set up first, so it receives only the services that do not
   * need a store.
   */
  services: ContextServices &
    Partial<
      Pick<
        Services,
        | "keyCache"
        | "ledgerQueue"
        | "usageQueries"
        | "store"
        | "jobs"
        | "fleetSecret"
        | "observerSink"
      >
    >;
  needs: DeclaredNeeds;
  /** Bounds of the config. */
  bounds: Context["bounds"];
  /** Returns the generation's catalog. Available after its providers are mounted. */
  catalog: () => Catalog;
  /** Returns the plugin's generation. Undefined while it is built. A store has none. */
  generation?: () => Generation | undefined;
}

export function createPluginContext({
  id,
  scope,
  services,
  needs,
  bounds: { jsonValues },
  catalog,
  generation = () => undefined,
}: ContextOptions): Context {
  const log = services.log.child({ plugin: id });
  const peerQueries = new Set<string>();
  const outside = () => ({
    reach: undefined,
    dispatcher: undefined,
    allowedOrigins: needs.origins,
    allowsMetadataService: needs.usesMetadataService,
    proxy: services.proxy,
  });
  const sendRequest: Context["fetch"] = async (to, init) => {
    const credential = { name: "", fields: {}, weight: 1, models: undefined, zdr: undefined };
    const reached = isPath(to) ? await createLocalAccess(services.localEndpoint()) : outside();
    return createProviderClient({ ...reached, credential, signal: scope.closed })
      .fetch(to, init)
      .catch((problem: unknown) => {
        throw markAsHookFailure(problem);
      });
  };
  let streamed: StreamedRequests | undefined;
  const fetchStream: Context["fetchStream"] = (to, init) => {
    streamed ??= new StreamedRequests(scope.closed);
    return isPath(to)
      ? sendLocally(streamed, services.localEndpoint(), to, init)
      : streamed.send(to instanceof URL ? to : new URL(to), init, outside());
  };
  return {
    id,
    log,
    signal: scope.signal,
    own: (thing) => scope.own(thing),
    onDispose: (undo) => scope.defer(undo),
    runEvery: (ms, tick) =>
      scope.every(ms, tick, (error) => log.error({ err: error }, "background task failed")),
    shared: (key, create, end) => services.shared.acquire(scope, `${id}\n${key}`, create, end),
    createPeerQuery<Q, A>(name: string, answer: (question: Q) => A | undefined) {
      if (peerQueries.has(name)) throw new Error(`createPeerQuery: "${name}" exists already`);
      peerQueries.add(name);
      const topic = `${id}/${name}`;
      services.pluginPeers.register(scope, topic, answer);
      return (question: Q) => services.pluginPeers.ask(topic, question) as Promise<A | undefined>;
    },
    fetch: sendRequest,
    fetchStream,
    connect: async (path, options = {}) => {
      if (!isPath(path)) fail("internal", `${path} is not a path of this gateway.`);
      const { openOwnSocket } = await import("./own-socket.ts");
      return scopedSocket(scope, await openOwnSocket(services.localEndpoint(), path, options));
    },
    sendSubrequest: (request, of) => runSubrequest(id, request, of),
    openCall,
    keys: createKeyAccess(id, services),
    catalog: createCatalogView(catalog),
    quoteCost: (candidate, usage) => quoteCost(candidate, usage, wallClock()),
    ledger: {
      listEntries: (query, page, of) => services.usageQueries!.listEntries(query, page, of),
      sumEntries: (query, of) => services.usageQueries!.sumEntries(query, of),
      ...(services.usageQueries?.readLimits && {
        readLimits: (limits, at) => services.usageQueries!.readLimits!(limits, at),
      }),
    },
    jobs: services.jobs ?? services.store?.jobs,
    jobLines: services.store?.jobs && createJobLines(generation),
    bounds: { jsonValues },
    jobCalls: services.store?.jobs && createJobCalls(generation),
    deriveSecret: (purpose) =>
      new Uint8Array(hkdfSync("sha256", services.fleetSecret!, "", `plugins: ${purpose}`, 32)),
    reportEvent(name, data) {
      const event = createPluginEvent(id, name, data);
      services.observerSink?.reportEvent({ at: wallClock(), ...event });
    },
    stats: () => services.stats(),
    env: (name) =>
      needs.env.includes(name)
        ? services.env[name]
        : fail("internal", `This plugin does not declare the variable ${name} in needs.env.`, {
            code: "not_declared",
          }),
    readFile: (path) => readDeclaredFile(needs, path),
    stateDir() {
      const dir = join(services.stateDir, id.replace(/[^\w.-]/g, "_"));
      mkdirSync(dir, { recursive: true, mode: 0o700 });
      return dir;
    },
  };
}

/** Returns the access to keys. A plugin can write only keys with its own prefix. */
function createKeyAccess(id: string, services: ContextOptions["services"]): Context["keys"] {
  const prefix = `${id.slice(id.indexOf(".") + 1)}:`;
  return {
    find: (secret) => services.keyCache!.find(secret),
    findByDigest: (digest) => services.keyCache!.findByDigest(digest),
    async read(digest) {
      const record = await services.store!.findKey(digest);
      return record?.id.startsWith(prefix) === true ? record : undefined;
    },
    async write(record) {
      const { digest } = record;
      if (!record.id.startsWith(prefix) || record.admin !== undefined)
        fail("internal", `The ID of the key must begin with "${prefix}".`, {
          code: "key_not_allowed",
        });
      const before = await services.store!.findKey(digest);
      if (before && before.id !== record.id)
        fail("internal", "The digest belongs to another key.", { code: "key_not_allowed" });
      await services.ledgerQueue!.writeKey(record);
      services.keyCache!.invalidate();
      services.observerSink?.reportEvent({
        type: "key",
        at: wallClock(),
        change: before ? "updated" : "created",
        key: record.id,
      });
    },
  };
}

/** Closes a socket with its generation. */
function scopedSocket(scope: LifetimeScope, socket: OwnSocket): OwnSocket {
  const close = () => socket.close(1001, "The config was reloaded.");
  if (scope.closed.aborted) close();
  scope.closed.addEventListener("abort", close, { once: true });
  void socket.closed.then(() => scope.closed.removeEventListener("abort", close));
  return socket;
}

async function createLocalAccess(own: LocalEndpoint) {
  const { localAgentFor } = await import("./local-agent.ts");
  return {
    reach: { base: own.origin },
    dispatcher: localAgentFor(own),
    baseLabel: "The port of this gateway",
  };
}

/** Sends a request to this gateway's own port. */
async function sendLocally(
  requests: StreamedRequests,
  own: LocalEndpoint,
  path: string,
  init: StreamedRequestInit,
): Promise<StreamedResponse> {
  return requests.send(new URL(path, own.origin), init, await createLocalAccess(own));
}

/** Whether the target is a path. "//host" is a URL of another host. */
const isPath = (to: string | URL): to is string =>
  typeof to === "string" && /^\/(?![/\\])/.test(to);

/** Returns the part of the catalog that a key may see. */
function createCatalogView(catalog: () => Catalog): Context["catalog"] {
  return {
    list: ({ identity, privacy, operation }) =>
      catalog().list({
        operation,
        privacy,
        isAllowed:
          identity?.models && ((id) => identity.models!.some((p) => matchesPattern(p, id))),
      }),
    find: (id) => catalog().listing(id),
    operations: () => catalog().operations,
  };
}

// Reads the files that a plugin declared, and no others. The files are read on demand.

/** Maximum file size, in bytes. A certificate, token, or list is smaller. */
const MAX_BYTES = 16 * 1024 * 1024;

/**
 * Reads a declared file. The declared path may be a symbolic link. A link inside a declared folder
 * must stay inside that folder.
 */
async function readDeclaredFile(
  { files, baseDir }: Pick<DeclaredNeeds, "files" | "baseDir">,
  path: string,
): Promise<Buffer> {
  const wanted = resolve(baseDir, path);
  const declared = files.find((one) => isInFolder(wanted, one));
  if (declared === undefined)
    return fail("internal", `This plugin does not declare the file ${wanted} in needs.files.`, {
      code: "not_declared",
    });
  const [real, root] = await Promise.all([realpath(wanted), realpath(declared)]);
  if (!isInFolder(real, root))
    fail(
      "internal",
      `${wanted} resolves to ${real}, which the plugin does not declare in needs.files.`,
      {
        code: "not_declared",
      },
    );
  // Opening a pipe would block, and a link that replaced the file in the meantime must not be
  // followed.
  const file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) fail("invalid", `${wanted} is not a file.`);
    if (stat.size > MAX_BYTES) fail("too_large", `${wanted} is larger than ${MAX_BYTES} bytes.`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

const isInFolder = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
