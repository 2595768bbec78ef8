import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { defineMiddleware, type Call, type Exchange, type RecordedResponse } from "tollgate/plugin";

interface Entry {
  readonly tenant: string;
  readonly response: RecordedResponse;
  /** Time when the response was stored, in Unix milliseconds. */
  readonly at: number;
}

/** The cache of one process. */
interface Cache {
  /** Ordered by last use, the oldest first. */
  readonly entries: Map<string, Entry>;
  /** Responses that a provider is generating. Equal requests wait for them. */
  readonly pending: Map<string, Promise<Entry | undefined>>;
  /** Size by tenant. */
  readonly bytes: Map<string, number>;
}

const MB = 1024 * 1024;
/** Fields that identify the user and do not change the response. */
const USER_FIELDS = new Set(["user", "metadata", "safety_identifier"]);

/** Returns the tenant of a request. Undefined if it has no identity or lacks the label: it then shares no responses. */
function tenantOf({ identity }: Exchange, share: string): string | undefined {
  if (share === "all") return "all";
  if (share === "key") return identity && `key ${identity.id}`;
  const label = identity?.labels?.[share.slice("label:".length)];
  return label === undefined ? undefined : `${share} ${label}`;
}

/** Whether the response depends on data outside the body, such as stored objects and hosted tools. */
const dependsOnState = ({ features }: Exchange): boolean =>
  features.some((one) => one === "n" || one.startsWith("hosted.") || one.startsWith("state."));

/** Hashes everything that the response depends on. */
function cacheKey(tenant: string, { exchange: x, id }: Call): string {
  const body = Object.entries(x.body).filter(([field]) => !USER_FIELDS.has(field));
  const headers = Object.entries(x.headers).filter(([name]) => /^(anthropic|openai)-/.test(name));
  const context = [
    x.frontend,
    x.protocol,
    x.action,
    x.stream,
    x.path,
    String(x.query),
    headers.sort(),
  ];
  return createHash("sha256")
    .update(JSON.stringify([tenant, id, context, body]))
    .digest("base64");
}

function remove(cache: Cache, key: string): void {
  const found = cache.entries.get(key);
  if (!found || !cache.entries.delete(key)) return;
  cache.bytes.set(found.tenant, cache.bytes.get(found.tenant)! - found.response.body.length);
  if (cache.bytes.get(found.tenant) === 0) cache.bytes.delete(found.tenant);
}

const sizeOf = ({ bytes }: Cache): number => [...bytes.values()].reduce((all, one) => all + one, 0);

/** Stores an entry, and removes the least recently used entries above the limits. */
function insert(cache: Cache, key: string, entry: Entry, maxBytes: number, maxTenantBytes: number) {
  const { tenant } = entry;
  remove(cache, key);
  cache.entries.set(key, entry);
  cache.bytes.set(tenant, (cache.bytes.get(tenant) ?? 0) + entry.response.body.length);
  for (const [oldest, other] of cache.entries) {
    const isTotalFull = sizeOf(cache) > maxBytes;
    if ((cache.bytes.get(tenant) ?? 0) <= maxTenantBytes && !isTotalFull) break;
    if (other.tenant === tenant || isTotalFull) remove(cache, oldest);
  }
}

/** Waits for the response to an equal request in progress, up to the given time. */
const waitFor = ({ pending }: Cache, key: string, seconds: number): Promise<Entry | undefined> =>
  Promise.race([pending.get(key), sleep(seconds * 1000, undefined, { ref: false })]);

/** Returns the maximum age in milliseconds that the client accepts. 0 means that it requires a new response. */
function maxAge(cacheControl: string, lifetime: number): number {
  if (/\bno-(cache|store)\b/.test(cacheControl)) return 0;
  const age = /\bmax-age=(\d{1,9})\b/.exec(cacheControl)?.[1];
  return age === undefined ? lifetime : Math.min(lifetime, Number(age) * 1000);
}

const positiveInteger = (description: string, value: number) =>
  ({ type: "integer", minimum: 1, default: value, description }) as const;

export default defineMiddleware({
  api: 1,
  name: "exact-cache",
  summary: "Returns the same response to repeated requests of a tenant, never under Service-ZDR",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      lifetime_s: positiveInteger("How long a response is reused, in seconds", 300),
      max_mb: positiveInteger("Maximum size of the cache, in megabytes", 64),
      tenant_mb: positiveInteger("Maximum size per tenant, in megabytes", 16),
      wait_s: positiveInteger(
        "How long a request waits for an equal request in progress, in seconds",
        10,
      ),
      share: {
        type: "string",
        pattern: "^(key|all|label:.{1,256})$",
        default: "key",
        description:
          "Who shares responses: key, all, or label:<name> for keys with the same value of a label",
      },
    },
  },
  setup({ lifetime_s, max_mb, tenant_mb, wait_s, share }, ctx) {
    const create = (): Cache => ({ entries: new Map(), pending: new Map(), bytes: new Map() });
    const cache = ctx.shared("cache", create);
    // Called when a request ends. `isReusable` is false if its response must not be stored.
    const finish = new WeakMap<object, (isReusable: boolean) => Promise<void>>();
    return {
      async attempt(call, next) {
        const x = call.exchange;
        // The previous attempt of this request is ended, because the request must not wait for
        // itself.
        void finish.get(x)?.(false);
        const cacheControl = String(x.headers["cache-control"] ?? "");
        const tenant = tenantOf(x, share);
        const off = x.privacy !== "off" || x.actionType !== "generate" || dependsOnState(x);
        if (off || tenant === undefined || /\bno-store\b/.test(cacheControl)) {
          x.setResponseHeader("x-tollgate-cache", "off");
          return next();
        }
        const key = cacheKey(tenant, call);
        const accepted = maxAge(cacheControl, lifetime_s * 1000);
        const found =
          cache.entries.get(key) ??
          (accepted > 0 && cache.pending.has(key) ? await waitFor(cache, key, wait_s) : undefined);
        if (found && Date.now() - found.at < accepted) {
          cache.entries.delete(key);
          cache.entries.set(key, found);
          x.setResponseHeader(
            "x-tollgate-cache",
            `hit; age=${Math.floor((Date.now() - found.at) / 1000)}`,
          );
          return found.response;
        }
        x.setResponseHeader("x-tollgate-cache", "miss");
        const own = Promise.withResolvers<Entry | undefined>();
        cache.pending.set(key, own.promise);
        let recorded: Promise<RecordedResponse | null> | undefined;
        finish.set(x, async (isReusable) => {
          const response = isReusable && (await recorded);
          const entry = response ? { tenant, response, at: Date.now() } : undefined;
          if (entry) insert(cache, key, entry, max_mb * MB, tenant_mb * MB);
          if (cache.pending.get(key) === own.promise) cache.pending.delete(key);
          own.resolve(entry);
        });
        const reply = await next();
        recorded = reply.recordResponse(2 * MB);
        return reply;
      },
      // A response that was truncated, filtered, or refused is not stored.
      settle(x, { fault, finish: reason }) {
        const isReusable =
          !fault && (reason === undefined || /^(stop|stop_sequence|tool_calls)$/.test(reason));
        void finish.get(x)?.(isReusable);
      },
    };
  },
});
