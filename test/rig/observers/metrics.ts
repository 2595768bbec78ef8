// A real Prometheus scrapes a gateway of two processes under load, with fallbacks, failures,
// rejections, and invented names. Its values equal the ledger, to the nano-dollar, and the
// upstream's requests, one by one.
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  jsonResponse,
  say,
  scriptedModel,
  startUpstream,
  type TestUpstream,
} from "tollgate/testing";
import { DASHBOARDS, jsonOf } from "../../../.build/dashboards.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { parseSamples } from "../../kit/exposition.ts";
import { type ChangedSource, mutantOf, preloaded } from "../mutants/changed-source.ts";
import { createChance, type Rig, type RigResult } from "../rig.ts";
import * as tools from "./prometheus-tools.ts";

const TOKEN = "scraper-".padEnd(32, "0123456789");
const DEPLOY = join(import.meta.dirname, "../../../deploy/prometheus");
/** The observer's limit, and the folded series. */
const MOST_SERIES = 2_001;

/** Maximum number of label values, and the name of the rest. */
const MOST_VALUES = 51;

/** Planted defect of the observer, which must be found. */
const MUTANTS = {
  // Any client model name becomes a label.
  open: {
    in: "plugins/observers/metrics/label-values.ts",
    line: '{ model: OTHER, operation: "chat" }',
    instead: '{ model, operation: "chat" }',
  },
  // So does any client text inside one.
  wide: {
    in: "plugins/observers/metrics/label-values.ts",
    line: "if (this.#seen.size >= this.#most) return OTHER;",
    instead: "",
  },
  // One request per batch is not counted.
  forgetful: {
    in: "plugins/observers/metrics/tally.ts",
    line: "for (const record of batch)",
    instead: "for (const record of batch.slice(1))",
  },
  // Money is rounded to a millionth.
  rounding: {
    in: "plugins/observers/metrics/exposition.ts",
    line: "digits.slice(-9).replace",
    instead: "digits.slice(-9, -3).replace",
  },
  // Retries are counted only from the third provider on.
  patient: {
    in: "plugins/observers/metrics/tally.ts",
    line: "for (let i = 1; i < row.length; i++) {",
    instead: "for (let i = 2; i < row.length; i++) {",
  },
  // OpenMetrics without its end mark.
  endless: {
    in: "plugins/observers/metrics/exposition.ts",
    line: 'if (this.#openMetrics) this.#lines.push("# EOF");',
    instead: "",
  },
} as const satisfies Record<string, ChangedSource>;

interface MetricsOptions {
  readonly requests: number;
  readonly names: number;
  readonly seed: number;
  readonly mutant?: keyof typeof MUTANTS | undefined;
}

const yaml = (url: string) => `workers: 2
admin: { port: 0, tokens: { scraper: { role: metrics, token: "\${env:T}" } } }
frontends: [chat-completions]
middleware: [auth, limits, { use: usage, with: { label_headers: [x-team] } }]
observers: [{ use: metrics, with: { include_keys: true, labels: [x-team] } }]
providers:
  up:
    use: openai-compatible
    with: { base_url: "${url}/v1", api_key: k, list_models: false }
    models: { m: { price: { input: 3.001, output: 15.007 } } }
  bad:
    use: openai-compatible
    with: { base_url: "${url}/bad", api_key: k, list_models: false }
    models: { m: { price: { input: 1, output: 2 } } }
models:
  fast: [bad/m, up/m]
`;

interface Tally {
  answered: number;
  refused: number;
}

async function load(
  at: Daemon,
  of: { requests: number; names: number; seed: number },
): Promise<Tally> {
  const chanced = createChance(of.seed);
  const tally = { answered: 0, refused: 0 };
  let next = 0;
  const ask = async (i: number) => {
    const made = i < of.names;
    // A request without a price adds to no label: every second key with its own label requests a
    // model with a price.
    const model = made
      ? i % 2 === 0
        ? `up/made-up-${i}`
        : "up/m"
      : chanced.one(["up/m", "fast", "fast", "nowhere/m"]);
    const answer = await fetch(`${at.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        // Some of the keys are invented too.
        authorization: `Bearer ${i % 10 === 9 ? `tg_made_up_${i}` : at.key}`,
        "x-team": `team-${made ? i : i % 3}`,
      },
      body: JSON.stringify({
        model,
        stream: chanced.often(0.3),
        messages: [{ role: "user", content: "Hello." }],
      }),
    });
    await answer.arrayBuffer();
    tally[answer.ok ? "answered" : "refused"]++;
  };
  const hand = async () => {
    while (next < of.requests + of.names) await ask(next++);
  };
  await Promise.all(Array.from({ length: 24 }, hand));
  return tally;
}

/** Each expression of each panel, as Grafana queries it. */
const expressions = (): readonly string[] =>
  DASHBOARDS.flatMap((dashboard) =>
    (jsonOf(dashboard) as { panels: { targets?: { expr: string }[] }[] }).panels.flatMap(
      ({ targets = [] }) => targets.map(({ expr }) => expr),
    ),
  ).map((expr) =>
    expr
      .replaceAll("$__rate_interval", "1m")
      .replaceAll("$__range", "5m")
      .replaceAll(/\$(?:job|instance)/g, ".*"),
  );

/** Rules, their tests, and the dashboards' expressions as rules. */
async function written(dir: string): Promise<string[]> {
  const wrong = [
    await tools.checkConfig(join(DEPLOY, "prometheus.yaml")),
    await tools.checkRules(join(DEPLOY, "rules.yaml")),
    await tools.testRules(join(DEPLOY, "rules-tests.yaml")),
  ];
  const file = join(dir, "dashboards.yaml");
  const rules = expressions().map((expr, i) => ({ record: `dashboard:${i}`, expr }));
  await writeFile(file, JSON.stringify({ groups: [{ name: "dashboards", rules }] }));
  wrong.push(await tools.checkRules(file));
  return wrong.filter((one) => one !== undefined);
}

/** Content of one scrape, parsed by the formats' own parsers. */
async function formats(admin: string): Promise<{ wrong: string[]; series: number }> {
  const scrape = async (accept: string) => {
    const headers = { authorization: `Bearer ${TOKEN}`, accept };
    return (await fetch(`${admin}/metrics`, { headers })).text();
  };
  const text = await scrape("text/plain; version=0.0.4");
  const open = await scrape("application/openmetrics-text; version=1.0.0");
  const found = [await tools.checkText(text), await tools.checkOpenMetrics(open)];
  return { wrong: found.filter((one) => one !== undefined), series: parseSamples(text).length };
}

export async function metrics(of: MetricsOptions, say: (line: string) => void): Promise<RigResult> {
  await tools.install();
  const dir = await mkdtemp(join(tmpdir(), "tollgate-prometheus-"));
  // These files do not depend on the defect, and their check takes a minute.
  const wrong = of.mutant ? [] : await written(dir);
  const same = (what: string, ours: number, theirs: number) => {
    if (ours !== theirs) wrong.push(`${what}: ${theirs} in Prometheus, and it is ${ours}`);
  };
  await using up = await provider();
  const env = { T: TOKEN, ...(of.mutant && preloaded(MUTANTS[of.mutant])) };
  await using at = await startDaemon({ yaml: yaml(up.url), env });
  const { adminUrl: admin } = (await at.ask("status")) as { adminUrl: string };
  const counts: Record<string, number> = {};
  try {
    await using prom = await tools.prometheus(dir, new URL(admin).host, TOKEN);
    const value = async (expr: string) =>
      Number((await prom.query(`sum(${expr})`))[0]?.value[1] ?? 0);
    const began = performance.now();
    const tally = await load(at, of);
    say(`${of.requests + of.names} requests in ${Math.round(performance.now() - began)} ms`);
    await standStill(() => value("tollgate_requests_total"), of.requests + of.names);
    // One more scrape, so that related values are of one time.
    await sleep(2_500);
    const { total } = (await at.ask("ledger.totals", { by: ["model"] })) as unknown as {
      total: { calls: number; costNano: string };
    };
    const to = (path: string) => up.requests.filter((one) => one.path.startsWith(path)).length;
    same(
      "spend in nano-dollars",
      Number(total.costNano),
      Math.round((await value("tollgate_spend_usd_total")) * 1e9),
    );
    same("calls in the ledger", total.calls, await value('tollgate_calls_total{state!="void"}'));
    same("calls to up", to("/v1/"), await value('tollgate_calls_total{provider="up"}'));
    same("calls to bad", to("/bad/"), await value('tollgate_calls_total{provider="bad"}'));
    same("fallbacks", to("/bad/"), await value("tollgate_fallbacks_total"));
    same("answered", tally.answered, await value('tollgate_requests_total{outcome="ok"}'));
    same("not answered", tally.refused, await value('tollgate_requests_total{outcome!="ok"}'));
    for (const by of ["tollgate_key_spend_usd_total", "tollgate_label_spend_usd_total"])
      same(by, Number(total.costNano), Math.round((await value(by)) * 1e9));
    for (const { metric, value: many } of await prom.query(
      'count by (__name__) ({job="tollgate", __name__!~".+_bucket"})',
    ))
      if (Number(many[1]) > MOST_SERIES) wrong.push(`${metric["__name__"]} has ${many[1]} series`);
    const madeUp = await value('count(tollgate_calls_total{model=~"made-up.*"})');
    if (madeUp > 0) wrong.push(`${madeUp} series are of models that are made up`);
    const values = await value("count(tollgate_label_spend_usd_total)");
    if (values > MOST_VALUES) wrong.push(`a label has ${values} values`);
    let empty = 0;
    for (const expr of expressions())
      await prom.query(expr).then(
        (found) => (empty += found.length === 0 ? 1 : 0),
        (error: Error) => wrong.push(error.message),
      );
    const read = await formats(admin);
    wrong.push(...read.wrong);
    Object.assign(counts, {
      ...tally,
      calls: total.calls,
      series: read.series,
      panels: expressions().length,
      empty,
    });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
  return { wrong, counts: { ...counts, alerts: await alerts() }, seed: of.seed };
}

const alerts = async (): Promise<number> =>
  (await readFile(join(DEPLOY, "rules.yaml"), "utf8")).match(/- alert:/g)!.length;

/** When this many are reported, or no more arrive. */
async function standStill(told: () => Promise<number>, all: number): Promise<void> {
  for (let [i, count] = [0, 0]; i < 12 && count < all; i++) {
    await sleep(500);
    const now = await told();
    if (now !== count) i = 0;
    count = now;
  }
}

/** One half of it responds, and the other never does. */
async function provider(): Promise<TestUpstream> {
  return startUpstream({
    ...scriptedModel(say("Hello there")),
    "POST /bad/chat/completions": jsonResponse({ error: { message: "Too much." } }, 503),
  });
}

export const rig: Rig = {
  options: { requests: 3_000, names: 2_500, seed: 1, mutant: "" },
  run: ({ requests, names, seed, mutant }, say) =>
    metrics(
      {
        requests: Number(requests),
        names: Number(names),
        seed: Number(seed),
        mutant: mutantOf(MUTANTS, mutant),
      },
      say,
    ),
};
