// WebSocket sessions that end at every frame: Realtime, Gemini Live, and Responses, which the gateway
// sends over HTTP or over WebSockets of the provider. They are cut by the client, by the provider, by a
// revoked key, by a spent budget, by a kill of the gateway, and by a drain. In each world, gateways run
// one after another on the same store, and then its ledger is compared with the responses that clients
// saw and providers made.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import type { JsonObject, LedgerEntry } from "tollgate/plugin";
import { parseKey } from "../../../src/lib/api-key.ts";
import { formatLimit } from "../../../src/plugin/store/limit.ts";
import { startInProcess } from "../../kit/in-process.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { mutantOf, preloaded } from "../mutants/changed-source.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";
import {
  allEndings,
  allPlans,
  Deck,
  FRAMES,
  providerCut,
  type Cutter,
  type Ending,
  type Plan,
  type PlanFilter,
} from "./plans.ts";
import { startProviders, type ProtocolName, type Providers } from "./providers.ts";
import { runClient, SCRIPTS, type ClientView } from "./session.ts";
import { judgeSessions, type SessionView } from "./socket-checks.ts";
import { MUTANTS } from "./socket-mutants.ts";

interface SocketsOptions {
  readonly worlds: number;
  readonly seed: number;
  /** Gateways in each world. */
  readonly lives?: number;
  /** Sessions of each gateway that are cut by a plan. */
  readonly sessions?: number;
  readonly mutant?: keyof typeof MUTANTS | undefined;
  readonly only?: PlanFilter | undefined;
  /** Factor of all time limits. */
  readonly patience?: number;
}

/** Time after which the socket of a revoked key must be closed. */
const REVOKED_MS = 1_500;
const SLOW_MS = 200;
/** Number of sessions that run when a gateway ends, beside the one whose frame ends it. */
const BESIDE = 3;
const PROTOCOLS = Object.keys(FRAMES) as ProtocolName[];
/** No session and no shutdown takes as long. */
const HANGS_MS = 30_000;
/** Time in which a gateway that drains completes what runs. */
const DRAIN_MS = 10_000;
/** Cost of a whole session in billionths of a dollar, about. */
const SESSION_NANO: Readonly<Record<ProtocolName, number>> = {
  realtime: 1_300_000,
  live: 750_000,
  responses: 500_000,
  pooled: 500_000,
};

export async function sockets(of: SocketsOptions, say: (line: string) => void): Promise<RigResult> {
  const chance = createChance(of.seed);
  const plans = new Deck(allPlans(of.only), chance);
  const endings = new Deck(allEndings(of.only), chance);
  const wrong: string[] = [];
  const counts: { [what: string]: number } = { worlds: 0, sessions: 0, responses: 0 };
  const began = performance.now();
  for (let n = 0; n < of.worlds; n++) {
    const lives = Array.from({ length: of.lives ?? 2 }, () => ({
      ending: endings.deal(),
      plans: Array.from({ length: of.sessions ?? 12 }, () => plans.deal()),
      beside: Array.from({ length: BESIDE }, () => chance.one(PROTOCOLS)),
    }));
    const found = await new World(of, lives, chance).run();
    for (const problem of found.wrong) {
      wrong.push(`world ${n}: ${problem}`);
      say(`  wrong: world ${n}: ${problem}`);
    }
    counts["worlds"]!++;
    for (const [what, count] of Object.entries(found.counts))
      counts[what] = what.startsWith("max_")
        ? Math.max(counts[what] ?? 0, count)
        : (counts[what] ?? 0) + count;
    const seconds = Math.round((performance.now() - began) / 1_000);
    say(`${n + 1} of ${of.worlds} worlds, ${counts["sessions"]} sessions in ${seconds} s`);
  }
  return { wrong, counts, seed: of.seed };
}

/** The sessions of one gateway: first those with plans, then those that run when it ends. */
interface Life {
  readonly ending: Ending;
  readonly plans: readonly Plan[];
  /** Protocols of the sessions that run beside the one whose frame ends the gateway. */
  readonly beside: readonly ProtocolName[];
}

interface Session {
  readonly plan: Plan;
  readonly model: string;
  readonly life: Life;
  key: string;
  secret: string;
  view: ClientView | undefined;
  /** Time at which the key was revoked. */
  revokedAt: number | undefined;
  closedAt: number;
}

/** Gateways one after another, on one store and with one set of providers. */
class World {
  readonly #of: SocketsOptions;
  readonly #lives: readonly Life[];
  readonly #chance: Chance;
  readonly #sessions: Session[] = [];
  readonly #wrong: string[] = [];
  #maxRevokedMs = 0;

  constructor(of: SocketsOptions, lives: readonly Life[], chance: Chance) {
    this.#of = of;
    this.#lives = lives;
    this.#chance = chance;
  }

  async run(): Promise<{ wrong: string[]; counts: { [what: string]: number } }> {
    for (const life of this.#lives) {
      for (const plan of life.plans) this.#add(life, plan);
      // The first of these is the one whose frame ends the gateway.
      for (const protocol of [life.ending.protocol, ...life.beside])
        this.#add(life, { protocol, by: "none", at: 0 });
    }
    const cuts = new Map(this.#sessions.map(({ model, plan }) => [model, providerCut(plan)]));
    await using providers = await startProviders({
      cutOf: (model) => cuts.get(model),
      paceMs: this.#chance.one([0, 1, 3]),
      lateUsage: this.#chance.often(0.5),
      forgets: this.#chance.often(0.3),
    });
    const dir = await mkdtemp(join(tmpdir(), "tollgate-sockets-"));
    try {
      for (const life of this.#lives) await this.#live(life, dir, providers);
      return await this.#judge(dir, providers);
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  }

  #add(life: Life, plan: Plan): void {
    // Google's provider recognizes models of the Live API by their names.
    const model = `m${this.#sessions.length}${plan.protocol === "live" ? "-live" : ""}`;
    const unset = { key: "", secret: "", view: undefined, revokedAt: undefined, closedAt: 0 };
    this.#sessions.push({ plan, model, life, ...unset });
  }

  /** Runs the sessions of one gateway, and ends it after a frame of one of them. */
  async #live(life: Life, dir: string, providers: Providers): Promise<void> {
    const { mutant } = this.#of;
    const daemon = await startDaemon({
      dir,
      yaml: configOf(providers, this.#sessions, this.#patience),
      ...(mutant !== undefined && { env: preloaded(MUTANTS[mutant].change) }),
    });
    try {
      const sessions = this.#sessions.filter((session) => session.life === life);
      for (const session of sessions) await createKey(daemon, session);
      const planned = sessions.slice(0, life.plans.length);
      await Promise.all(
        planned.map((session) =>
          this.#play(session, daemon, (view, socket) => this.#cut(session, view, socket, daemon)),
        ),
      );
      const [first, ...others] = sessions.slice(life.plans.length);
      const signal = life.ending.by === "kill" ? "SIGKILL" : "SIGTERM";
      let isEnded = false;
      const endAt = (view: ClientView) => {
        if (isEnded || view.frames < life.ending.at) return;
        isEnded = true;
        daemon.kill(signal);
      };
      await Promise.all([
        this.#play(first!, daemon, endAt),
        ...others.map((session) => this.#play(session, daemon, () => {})),
      ]);
      if (!isEnded) this.#wrong.push(`${nameOf(first!)}: ${first!.view?.frames} frames`);
      daemon.kill(isEnded ? signal : "SIGKILL");
      if ((await this.#race(daemon.exit)) === undefined)
        this.#wrong.push(`a gateway did not end after ${signal}`);
    } finally {
      daemon.kill("SIGKILL");
      await daemon.exit;
    }
  }

  async #play(
    session: Session,
    daemon: Daemon,
    onFrame: (view: ClientView, socket: WebSocket) => void,
  ): Promise<void> {
    const running = runClient({
      url: daemon.url,
      key: session.secret,
      protocol: session.plan.protocol,
      model: session.model,
      onFrame: (view, socket) => {
        session.view = view;
        onFrame(view, socket);
      },
    });
    const view = await this.#race(running);
    session.closedAt = performance.now();
    if (view) session.view = view;
    else this.#wrong.push(`${nameOf(session)}: the connection was never closed`);
  }

  /** Cuts a session if its frame has come. */
  #cut(session: Session, view: ClientView, socket: WebSocket, daemon: Daemon): void {
    const { by, at } = session.plan;
    if (view.frames !== at) return;
    if (by === "client-close") socket.close();
    else if (by === "client-reset") socket.terminate();
    else if (by === "slow") {
      socket.pause();
      const goesOn = this.#chance.often(0.5);
      setTimeout(() => (goesOn ? socket.resume() : socket.terminate()), SLOW_MS);
    } else if (by === "revoke") {
      view.isQuiet = true;
      setTimeout(() => socket.close(), 2 * REVOKED_MS * this.#patience).unref();
      void daemon.ask("keys.revoke", { id: session.key }).then(
        () => (session.revokedAt = performance.now()),
        // The gateway has ended.
        () => {},
      );
    }
  }

  /** Resolves to undefined if the promise takes too long. */
  #race<T>(promise: Promise<T>): Promise<T | undefined> {
    const hangs = sleep(HANGS_MS * this.#patience, undefined, { ref: false });
    return Promise.race([promise, hangs]);
  }

  get #patience(): number {
    return this.#of.patience ?? 1;
  }

  async #judge(dir: string, providers: Providers) {
    // The next gateway finds the open responses. It runs in this process, which is cheaper.
    const gateway = await startInProcess({
      dir,
      yaml: configOf(providers, this.#sessions, this.#patience),
    });
    let entries: LedgerEntry[];
    try {
      const { problems } = (await gateway.ask("ledger.verify")) as {
        problems: { message: string }[];
      };
      for (const { message } of problems) this.#wrong.push(`verify: ${message}`);
      entries = await readEntries(gateway);
    } finally {
      await gateway.stop();
    }
    for (const session of this.#sessions) this.#judgeEnd(session);
    const views = this.#sessions.map((session): SessionView => viewOf(session, providers));
    const { wrong, counts } = judgeSessions(views, entries);
    const responses = views.reduce((sum, { client }) => sum + client.done.length, 0);
    return {
      wrong: [...this.#wrong, ...wrong],
      counts: {
        sessions: views.length,
        responses,
        pooled_connections: providers.pooledConnections,
        ...counts,
        max_revoked_ms: Math.round(this.#maxRevokedMs),
      },
    };
  }

  /** Compares how a session ended with its plan. */
  #judgeEnd(session: Session): void {
    const { plan, view, revokedAt, closedAt } = session;
    const wasKilled = isKilled(session);
    if (!view) return void this.#wrong.push(`${nameOf(session)}: no connection`);
    if (plan.by === "revoke" && revokedAt !== undefined && view.code === 1008) {
      const ms = closedAt - revokedAt;
      this.#maxRevokedMs = Math.max(this.#maxRevokedMs, ms);
      if (ms > REVOKED_MS * this.#patience)
        this.#wrong.push(`${nameOf(session)}: closed ${Math.round(ms)} ms after the revocation`);
    }
    const whole = SCRIPTS[plan.protocol].responses;
    if (READ.has(plan.by) && view.frames < plan.at)
      this.#wrong.push(
        `${nameOf(session)}: closed with ${view.code} (${view.reason}) after ${view.frames} frames`,
      );
    if (plan.by === "revoke" && view.done.length < whole && view.code !== 1008)
      this.#wrong.push(`${nameOf(session)}: revoked, and closed with ${view.code}`);
    // A gateway that drains completes what runs.
    if (plan.by === "none" && !wasKilled && view.begun > view.done.length)
      this.#wrong.push(`${nameOf(session)}: a response was cut by the drain`);
    if (plan.by !== "none" || view.done.length < whole) return;
    // A drain sends a notice, and Gemini Live may report usage in messages of their own.
    const more = view.frames - FRAMES[plan.protocol];
    if (more < 0 || more > whole)
      this.#wrong.push(`${nameOf(session)}: ${view.frames} frames in a whole session`);
  }
}

/** Cutters that act when the client has received a frame. */
const READ: ReadonlySet<Cutter> = new Set<Cutter>([
  "client-close",
  "client-reset",
  "revoke",
  "slow",
]);

/** Whether a session ran when its gateway was killed. */
const isKilled = ({ plan, life }: Session): boolean =>
  plan.by === "none" && life.ending.by === "kill";

const nameOf = ({ plan: { protocol, by, at }, model, life: { ending } }: Session): string =>
  `${model} (${protocol}, ${by} after ${at}; ${ending.by} after ${ending.at} of ${ending.protocol})`;

function viewOf(session: Session, providers: Providers): SessionView {
  const { plan, model, key, view } = session;
  const none: ClientView = {
    frames: 0,
    asked: 0,
    begun: 0,
    output: 0,
    done: [],
    isQuiet: false,
    code: 0,
    reason: "",
  };
  return {
    name: nameOf(session),
    protocol: plan.protocol,
    key,
    wasKilled: isKilled(session),
    wasCutByProvider: providerCut(plan) !== undefined,
    wasHeard: plan.by === "budget",
    client: view ?? none,
    provider: providers.view(plan.protocol, model),
  };
}

async function createKey(daemon: Daemon, session: Session): Promise<void> {
  const { by, at, protocol } = session.plan;
  const max = Math.round((SESSION_NANO[protocol] * at) / 10);
  const limits = by === "budget" ? [formatLimit({ unit: "nano_usd", max, per: "total" })] : [];
  const { secret } = (await daemon.ask("keys.create", { limits } as JsonObject)) as {
    secret: string;
  };
  session.secret = secret;
  session.key = parseKey(secret)!.id;
}

/** Reads all rows of the ledger. */
export async function readEntries(gateway: Pick<Daemon, "ask">): Promise<LedgerEntry[]> {
  const entries: LedgerEntry[] = [];
  let after: string | undefined;
  do {
    const page = (await gateway.ask("ledger.entries", {
      limit: 1_000,
      ...(after !== undefined && { after }),
    })) as unknown as { items: LedgerEntry[]; next?: string };
    entries.push(...page.items);
    after = page.next;
  } while (after !== undefined);
  return entries;
}

function configOf({ urls }: Providers, sessions: readonly Session[], patience: number): string {
  const models = (protocol: ProtocolName, fields: string) =>
    sessions
      .filter(({ plan }) => plan.protocol === protocol)
      .map(({ model }) => `      ${model}: { ${fields} }`)
      .join("\n");
  const voice =
    "operation: realtime, price: { input: 4, cache_read: 0.4, cache_read_audio: 0.4, audio_in: 32, output: 16, audio_out: 64 }";
  const text = "price: { input: 1, output: 10 }";
  return `
frontends: [realtime, gemini, responses]
retries: { per_target: 1 }
shutdown: { timeout: ${DRAIN_MS * patience}ms }
middleware: [auth, limits]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
providers:
  realtime:
    use: openai
    with: { base_url: "${urls.realtime}/v1", api_key: k }
    models:
      spare: { ${voice} }
${models("realtime", voice)}
  live:
    use: google
    with: { base_url: "${urls.live}", api_key: k }
    models:
      spare-live: { ${voice} }
${models("live", voice)}
  responses:
    use: openai
    with: { base_url: "${urls.responses}/v1", api_key: k }
    models:
      spare: { ${text} }
${models("responses", text)}
  pooled:
    use: openai
    with: { base_url: "${urls.pooled}/v1", api_key: k }
    models:
      spare: { ${text} }
${models("pooled", text)}
`;
}

export const rig: Rig = {
  options: {
    worlds: 60,
    seed: Date.now() % 1e6,
    lives: 2,
    sessions: 12,
    mutant: "",
    patience: 1,
    json: false,
  },
  async run({ worlds, seed, lives, sessions, mutant, patience, json }, say) {
    const planted = mutantOf(MUTANTS, mutant);
    const result = await sockets(
      {
        worlds: Number(worlds),
        seed: Number(seed),
        lives: Number(lives),
        sessions: Number(sessions),
        mutant: planted,
        only: planted && MUTANTS[planted].only,
        patience: Number(patience),
      },
      json === "true" ? () => {} : say,
    );
    if (json === "true") say(JSON.stringify(result));
    return result;
  },
};
