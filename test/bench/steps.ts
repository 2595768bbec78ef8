// The measurements, one step after another. The first steps share targets that run at the same
// time. The others start their own.
import { asking, watching } from "./compared/hooks.ts";
import { withScopes } from "./compared/scopes.ts";
import { growth, type Grown } from "./growth.ts";
import { type Length, type Lane, laneOf, lanes } from "./lanes.ts";
import { callOf, toolFrontend, toolTargets, toTools, type Generation } from "./mcp/tool-targets.ts";
import { measure, sample, takes, type Result, type Side } from "./rounds.ts";
import { besidePostgres } from "./postgres.ts";
import { begun, weighed, type Start } from "./start.ts";
import {
  bare,
  collecting,
  direct,
  elsewhere,
  everyObserver,
  tollgate,
  toward,
  type Target,
} from "./targets.ts";
import { peers, peersIn } from "./peers.ts";
import { young } from "./young.ts";

/** The two checkouts of one comparison. */
export const BEFORE = "before";
export const AFTER = "after";

/** Keeps its ledger in memory only. */
const MEMORY = "tollgate memory";

export interface Plan {
  readonly quick: boolean;
  readonly peer: boolean;
  /** Folder of start scripts of other gateways. */
  readonly peers?: string | undefined;
  readonly urls: readonly string[];
  /** Another checkout. Then only its lanes and ours are compared. */
  readonly before?: string | undefined;
  readonly rounds: number;
  /** A number that the operator set applies to all steps. */
  readonly given: boolean;
  readonly length: Length;
  /**
   * JIT compilers optimize for some sixty thousand requests of all types. A lane's own warm-up only
   * refreshes this.
   */
  readonly warmMs: number;
}

export interface Found {
  readonly results: Result[];
  /** Of each target by name, for the table of what is compared. */
  readonly described: Map<string, Pick<Target, "checks" | "records">>;
  grown: Grown[];
  start?: Start;
  streamKb?: number;
  /** CPU of a request to a young process, relative to a warmed-up one. */
  young?: readonly number[];
}

export interface Step {
  readonly name: string;
  readonly about: string;
  run(side: Side, found: Found): Promise<void>;
}

export interface Steps {
  readonly all: readonly Step[];
  /** Ends the shared targets. */
  stop(): Promise<void>;
}

/** Two targets that differ less than two rounds do are compared in many short rounds. */
const ALIKE = { rounds: 61, ms: 300 };

export function stepsOf(plan: Plan): Steps {
  const { length, rounds, quick, given } = plan;
  const shared: Target[] = [];

  async function warm(side: Side, lane: Lane, targets: readonly Target[]): Promise<void> {
    for (const target of targets) await sample(side, { ...lane, ms: plan.warmMs }, target);
  }

  /**
   * Every target gets all types of requests first, because compilers optimize for all of them, as
   * in a gateway in use.
   */
  async function warmAll(side: Side, targets: readonly Target[]): Promise<void> {
    await warm(side, laneOf("json-1k", length), targets);
    const rest = ["sse-full", "sse-messages", "json-16k", "sse-responses"];
    for (const name of rest) {
      const lane = { ...laneOf(name, length), ms: plan.warmMs / rest.length };
      for (const target of targets) if (takes(lane, target)) await sample(side, lane, target);
    }
  }

  async function gather(side: Side): Promise<void> {
    const { port } = side.mock;
    if (plan.before !== undefined) {
      shared.push(await tollgate(port, { name: BEFORE, root: plan.before }));
      shared.push(await tollgate(port, { name: AFTER }));
      return warmAll(side, shared);
    }
    for (const way of ["agent", "dispatch", "net"] as const) shared.push(await bare(way, port));
    for (const durability of ["power", "process", "relaxed"])
      shared.push(await tollgate(port, { durability }));
    shared.push(await tollgate(port, { name: MEMORY, store: "memory" }));
    if (plan.peer) shared.push(...(await peers(port)));
    if (plan.peers !== undefined) shared.push(...(await peersIn(plan.peers, port)));
    shared.push(...plan.urls.map(elsewhere));
    await warmAll(side, shared);
  }

  const describe = ({ described }: Found) => {
    for (const target of shared) described.set(target.name, target);
  };

  const common = lanes(length).map((lane): Step => ({
    name: lane.name,
    about: lane.about,
    async run(side, found) {
      if (shared.length === 0) await gather(side);
      describe(found);
      const here = shared.filter(
        (target) =>
          takes(lane, target) &&
          (!target.name.startsWith("tollgate ") || lane.ours.includes(target.name)),
      );
      if (lane.direct) here.unshift(direct(side.mock));
      found.results.push(...(await measure(side, lane, here, rounds)));
    },
  }));

  /** Lanes in which both checkouts use an upstream of another protocol. */
  const translated = (name: string, like: string): Step => ({
    name,
    about: `chat → messages, as ${like}`,
    async run(side, found) {
      if (shared.length === 0) await gather(side);
      const lane = { ...laneOf(like, length), name, direct: false };
      const targets = shared.map((target) => toward(target, target.name, "an/"));
      await warm(side, lane, targets);
      found.results.push(...(await measure(side, lane, targets, rounds)));
    },
  });

  /** Two separate targets with the load of another lane. */
  const pair = (
    name: string,
    about: string,
    like: string,
    made: (mock: number) => Promise<readonly Target[]>,
    alike?: { readonly rounds: number; readonly ms: number },
  ): Step => ({
    name,
    about,
    async run(side, found) {
      const usual = { ...laneOf(like, length), name, about, direct: false };
      const lane = alike ? { ...usual, ms: alike.ms } : usual;
      const targets = await made(side.mock.port);
      try {
        await warm(side, lane, targets);
        const many = given ? rounds : (alike?.rounds ?? rounds);
        found.results.push(...(await measure(side, lane, targets, many)));
      } finally {
        for (const target of targets) await target.stop();
      }
    },
  });

  const comparedTools = async ({ mock }: Side, generation: Generation) => {
    const frontend = toolFrontend(mock.port, generation);
    const of = { frontend, durability: "process" };
    const gates = [
      await tollgate(mock.port, { ...of, name: BEFORE, root: plan.before! }),
      await tollgate(mock.port, { ...of, name: AFTER }),
    ];
    return Promise.all(gates.map((gate) => toTools(gate, generation)));
  };

  /**
   * Calls of a tool: paced, which shows the time that is added to a call of a gateway with little
   * load, whose threads sleep between two calls; from one client that sends its next call at once;
   * and from 32 clients.
   */
  const tools = (name: string, generation: Generation, about: string): Step => ({
    name,
    about,
    async run(side, found) {
      const body = callOf(generation);
      const closed = { ...laneOf("json-32", length), direct: true, body };
      const loads: readonly Lane[] = [
        { ...laneOf("rate-500", length), name, about, rate: 200, body },
        { ...closed, name: `${name}-1`, connections: 1 },
        { ...closed, name: `${name}-32` },
      ];
      const isCompared = plan.before !== undefined;
      const targets = isCompared
        ? await comparedTools(side, generation)
        : await toolTargets(side.mock, generation);
      try {
        await warm(side, loads[2]!, targets);
        for (const lane of loads)
          found.results.push(...(await measure(side, lane, targets, rounds)));
      } finally {
        for (const target of targets) await target.stop();
      }
    },
  });

  const toolSteps = [
    tools("mcp", "stateless", "a tool's call, revision 2026-07-28, JSON: 200 a second, 1, and 32"),
    tools("mcp-session", "session", "the same, a session of 2025-11-25, streams of events"),
  ];

  const bothWays = async (mock: number) => {
    const gate = await tollgate(mock, { name: "passthrough" });
    return [gate, toward(gate, "to messages", "an/")];
  };
  const oneAndTwo = (mock: number) =>
    Promise.all(
      [1, 2].map((workers) =>
        tollgate(mock, { workers, core: undefined, name: `workers: ${workers}` }),
      ),
    );

  const withMetrics = async (mock: number) => [
    await tollgate(mock, { name: "no observer" }),
    await tollgate(mock, { name: "metrics", observers: "[metrics]" }),
  ];

  /** All observers that a gateway may use, and one of them alone. */
  const withEverything = async (mock: number) => {
    const sink = await collecting();
    const everything = await tollgate(mock, {
      name: "everything",
      observers: everyObserver(sink.url),
    });
    const stop = async () => {
      await everything.stop();
      sink.stop();
    };
    return [...(await withMetrics(mock)), { ...everything, stop }];
  };

  const stop = async () => {
    for (const target of shared.splice(0)) await target.stop();
  };
  if (plan.before !== undefined)
    return {
      all: [
        ...common,
        translated("to-messages", "json-1k"),
        translated("to-messages-sse", "sse-full"),
        ...toolSteps,
      ],
      stop,
    };
  return {
    all: [
      ...common,
      pair("to-messages", "chat → messages, JSON 1 KB, and verbatim", "json-1k", bothWays),
      pair("to-messages-sse", "chat → messages, full speed, and verbatim", "sse-full", bothWays),
      pair("workers", "one process and two, on all cores, JSON 1 KB", "json-1k", oneAndTwo),
      pair(
        "metrics",
        "with the observer metrics and without, JSON 1 KB",
        "json-1k",
        withMetrics,
        ALIKE,
      ),
      pair("metrics-sse", "the same, SSE at full speed", "sse-full", withMetrics, ALIKE),
      pair(
        "everything",
        "with metrics, otlp and access-log, with metrics, and without, JSON 1 KB",
        "json-1k",
        withEverything,
        ALIKE,
      ),
      pair("everything-sse", "the same, SSE at full speed", "sse-full", withEverything, ALIKE),
      pair("scopes", "with three scopes and without, JSON 1 KB", "json-1k", withScopes, ALIKE),
      pair("scopes-sse", "the same, SSE at full speed", "sse-full", withScopes, ALIKE),
      ...toolSteps,
      pair("child", "a hook in a child, here, and none, JSON 1 KB", "json-1k", asking, ALIKE),
      pair("child-500", "the same, open loop, 500 a second: its way", "rate-500", asking),
      pair("watch", "answers watched, and not, SSE at full speed", "sse-full", watching, ALIKE),
      ...([32, 128] as const).map((connections): Step => ({
        name: `postgres-${connections}`,
        about: `the ledger in sqlite and in PostgreSQL, JSON 1 KB, ${connections} connections`,
        async run(side, found) {
          const name = `postgres-${connections}`;
          const lane = { ...laneOf("json-1k", length), name, connections };
          found.results.push(...(await besidePostgres(side, lane, plan)));
        },
      })),
      {
        name: "postgres-500",
        about: "the same, open loop, 500 a second, and the mock alone: what is added to a way",
        async run(side, found) {
          const lane = { ...laneOf("rate-500", length), name: "postgres-500" };
          found.results.push(...(await besidePostgres(side, lane, plan)));
        },
      },
      {
        name: "growth",
        about:
          "models in the file, keys and accounts in the store, rows in the ledger, open streams",
        async run(side, found) {
          const lane = { ...laneOf("json-1k", length), name: "growth" };
          found.grown = await growth(side, lane, { rounds, share: quick ? 0.1 : 1 });
        },
      },
      {
        name: "streams",
        about: "what 1,000 open streams weigh, in a fresh process",
        async run(side, found) {
          found.streamKb = await weighed(side, laneOf("sse-1000", length), quick ? 1 : 3);
        },
      },
      {
        name: "young",
        about: "requests 5,000 to 10,000 of a fresh process, and the same process settled",
        async run(side, found) {
          const lane = laneOf("json-1k", length);
          const times = quick ? 2 : 3;
          found.young = await young(side, lane, { times, settleMs: plan.warmMs });
        },
      },
      {
        name: "start",
        about: "start to first answer, idle memory",
        async run(side, found) {
          found.start = await begun(side.mock.port, quick ? 3 : 7);
        },
      },
    ],
    stop,
  };
}
