import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { defineMiddleware, type Call, type Exchange, type RecordedResponse } from "tollgate/plugin";

interface Kept {
  readonly tenant: string;
  readonly answer: RecordedResponse;
  readonly at: number;
}

/** Of one process. `kept`: in the order of their last use; `flights`: being made, for who asks the same meanwhile. */
interface Shelf {
  readonly kept: Map<string, Kept>;
  readonly flights: Map<string, Promise<Kept | undefined>>;
  readonly bytes: Map<string, number>;
}

const MB = 1024 * 1024;
/** They say who asks, and not what. */
const WHO = new Set(["user", "metadata", "safety_identifier"]);

/** Whose answers these are. A request without an identity, or without the label, shares with nobody. */
function tenantOf({ identity }: Exchange, share: string): string | undefined {
  if (share === "all") return "all";
  if (share === "key") return identity && `key ${identity.id}`;
  const label = identity?.labels?.[share.slice("label:".length)];
  return label === undefined ? undefined : `${share} ${label}`;
}

/** What a provider keeps, or looks up, is not in the body: the same body may be answered otherwise tomorrow. */
const varies = ({ features }: Exchange): boolean =>
  features.some((one) => one === "n" || one.startsWith("hosted.") || one.startsWith("state."));

/** Everything that the answer's bytes depend on. */
function nameOf(tenant: string, { exchange: x, id }: Call): string {
  const body = Object.entries(x.body).filter(([field]) => !WHO.has(field));
  const headers = Object.entries(x.headers).filter(([name]) => /^(anthropic|openai)-/.test(name));
  const how = [x.frontend, x.protocol, x.action, x.stream, x.path, String(x.query), headers.sort()];
  return createHash("sha256")
    .update(JSON.stringify([tenant, id, how, body]))
    .digest("base64");
}

function drop(shelf: Shelf, name: string): void {
  const found = shelf.kept.get(name);
  if (!found || !shelf.kept.delete(name)) return;
  shelf.bytes.set(found.tenant, shelf.bytes.get(found.tenant)! - found.answer.body.length);
  if (shelf.bytes.get(found.tenant) === 0) shelf.bytes.delete(found.tenant);
}

const sizeOf = ({ bytes }: Shelf): number => [...bytes.values()].reduce((all, one) => all + one, 0);

/** What was not used for longest goes first. */
function put(shelf: Shelf, name: string, one: Kept, most: number, each: number): void {
  drop(shelf, name);
  shelf.kept.set(name, one);
  shelf.bytes.set(one.tenant, (shelf.bytes.get(one.tenant) ?? 0) + one.answer.body.length);
  for (const [old, { tenant }] of shelf.kept) {
    if ((shelf.bytes.get(one.tenant) ?? 0) <= each && sizeOf(shelf) <= most) break;
    if (tenant === one.tenant || sizeOf(shelf) > most) drop(shelf, old);
  }
}

/** The same request, if it is under way, once it is answered; not for longer than this. */
const joined = ({ flights }: Shelf, name: string, seconds: number): Promise<Kept | undefined> =>
  Promise.race([flights.get(name), sleep(seconds * 1000, undefined, { ref: false })]);

/** What the client's Cache-Control says, in milliseconds; 0: it wants a new answer. */
function freshness(said: string, lifetime: number): number {
  if (/\bno-(cache|store)\b/.test(said)) return 0;
  const age = /\bmax-age=(\d{1,9})\b/.exec(said)?.[1];
  return age === undefined ? lifetime : Math.min(lifetime, Number(age) * 1000);
}

const whole = (description: string, by: number) =>
  ({ type: "integer", minimum: 1, default: by, description }) as const;

export default defineMiddleware({
  api: 1,
  name: "exact-cache",
  summary: "Gives the same answer to the same request, never to another tenant and never under ZDR",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      lifetime_s: whole("How long an answer is given again, in seconds", 300),
      max_mb: whole("How much all answers may be, in megabytes", 64),
      tenant_mb: whole("How much those of one tenant may be, in megabytes", 16),
      wait_s: whole("How long a request waits for the same one that is under way, in seconds", 10),
      share: {
        type: "string",
        pattern: "^(key|all|label:.{1,256})$",
        default: "key",
        description: "Who is one tenant: a key, all keys with the same value of a label, all",
      },
    },
  },
  setup({ lifetime_s, max_mb, tenant_mb, wait_s, share }, ctx) {
    const made = (): Shelf => ({ kept: new Map(), flights: new Map(), bytes: new Map() });
    const shelf = ctx.shared("shelf", made);
    // What is done when a request is over; nothing for one whose answer is not to be kept.
    const keeping = new WeakMap<object, (fine: boolean) => Promise<void>>();
    return {
      async attempt(call, next) {
        const x = call.exchange;
        // Where it was tried before, that is over: a request must not wait for itself.
        void keeping.get(x)?.(false);
        const said = String(x.headers["cache-control"] ?? "");
        const tenant = tenantOf(x, share);
        const off = x.privacy !== "off" || x.actionType !== "generate" || varies(x);
        if (off || tenant === undefined || /\bno-store\b/.test(said)) {
          x.setResponseHeader("x-tollgate-cache", "off");
          return next();
        }
        const name = nameOf(tenant, call);
        const young = freshness(said, lifetime_s * 1000);
        const found =
          shelf.kept.get(name) ??
          (young > 0 && shelf.flights.has(name) ? await joined(shelf, name, wait_s) : undefined);
        if (found && Date.now() - found.at < young) {
          shelf.kept.delete(name);
          shelf.kept.set(name, found);
          x.setResponseHeader(
            "x-tollgate-cache",
            `hit; age=${Math.floor((Date.now() - found.at) / 1000)}`,
          );
          return found.answer;
        }
        x.setResponseHeader("x-tollgate-cache", "miss");
        const flight = Promise.withResolvers<Kept | undefined>();
        shelf.flights.set(name, flight.promise);
        let recorded: Promise<RecordedResponse | null> | undefined;
        keeping.set(x, async (fine) => {
          const answer = fine && (await recorded);
          const one = answer ? { tenant, answer, at: Date.now() } : undefined;
          if (one) put(shelf, name, one, max_mb * MB, tenant_mb * MB);
          if (shelf.flights.get(name) === flight.promise) shelf.flights.delete(name);
          flight.resolve(one);
        });
        const reply = await next();
        recorded = reply.recordResponse(2 * MB);
        return reply;
      },
      // An answer that was cut at its length, filtered or refused is not given again.
      settle(x, { fault, finish }) {
        const fine =
          !fault && (finish === undefined || /^(stop|stop_sequence|tool_calls)$/.test(finish));
        void keeping.get(x)?.(fine);
      },
    };
  },
});
