// Zero data retention, in two halves: the decision alone on invented facts, compared with a second
// implementation of the rules; and a whole gateway between an upstream that stores and one that
// does not, with fallbacks, aliases, both modes, and reloads.
//
// Rules: nothing of a request under ZDR reaches a provider that stores it, and an accepted one has
// a receipt that the data supports.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DataPolicy, Feature, Privacy, Retention } from "tollgate/plugin";
import { effectivePolicy, satisfies, type PolicyInputs } from "../../../src/catalog/data-policy.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { FRONTENDS } from "../money/billing-upstream.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";
import {
  ENTRY_POINTS,
  headersOf,
  pathOf,
  PROTOCOLS,
  providersOf,
  encodeBody,
  startZdrUpstreams,
  type EntryPoint,
  type ZdrUpstreams,
} from "./zdr-upstreams.ts";

/**
 * once: privacy is evaluated for the first candidate only. forge, store: a middleware that breaks
 * its rules, against which the gateway must be safe.
 */
export const PLANTS = ["", "once", "forge", "store"] as const;
type Plant = (typeof PLANTS)[number];

const LEVELS = ["off", "required", "strict"] as const;
const NOW = Date.parse("2026-11-21T12:00:00Z");

// ── the decision alone ───────────────────────────────────────────────────────────────────────────────────────

const DATES = [undefined, "2026-01-01", "2027-01-01", "rubbish"] as const;
const EVIDENCE = [
  undefined,
  [],
  ["somewhere"],
  ["https://example.com"],
  ["https://example.com/zdr"],
];

function retention(c: Chance): Retention {
  const kind = c.one(["zero", "zero", "memory", "days", "until_deleted", "unknown"] as const);
  return kind === "days" ? { kind, days: 1 + c.below(60) } : { kind };
}

const level = (c: Chance): DataPolicy => ({
  retention: retention(c),
  trains: c.one(["no", "no", "no", "yes", "opt_out", "unknown"]),
  requires: c.one([undefined, "none", "console", "contract", "unavailable"]),
  zeroWhen: c.one([undefined, "credential", "control"]),
  controls: c.one([
    undefined,
    [{ set: { store: false } }],
    [{ protocol: "responses", set: { store: false } }],
  ]),
  stateful: c.one([undefined, [], ["hosted.file_search" as Feature]]),
  evidence: c.one([...EVIDENCE, ["https://example.com/zdr"]]),
  expires: c.one(DATES),
});

const facts = (c: Chance): PolicyInputs => ({
  provider: c.often(0.85) ? level(c) : undefined,
  endpoint: c.often(0.2) ? level(c) : undefined,
  model: c.often(0.2) ? level(c) : undefined,
  exceptions: c.often(0.2) ? [level(c)] : [],
  credential: c.often(0.5)
    ? {
        declared: c.often(0.8),
        ...(c.often(0.6) && {
          until: c.one(["2026-11-20", "2026-11-21", "2027-01-01", "rubbish"]),
        }),
      }
    : undefined,
  features: c.often(0.3)
    ? [c.one<Feature>(["state.store", "hosted.file_search", "hosted.web_search", "tools"])]
    : [],
  protocol: c.one([null, "responses", "chat-completions"]),
  trusted: c.often(0.8),
  now: NOW,
});

/** The same rules in reverse: conditions for a call to a provider. */
function supported(of: PolicyInputs, wanted: Privacy): boolean {
  const levels = [of.provider, of.endpoint, ...(of.exceptions ?? []), of.model].filter(
    (l) => l !== undefined,
  );
  const word = of.credential;
  if (word?.declared === false) return false;
  const listed = levels.filter((l) => l.stateful).flatMap((l) => l.stateful!);
  const silent = !levels.some((l) => l.stateful);
  for (const feature of of.features ?? [])
    if (
      feature.startsWith("state.") ||
      listed.includes(feature) ||
      (silent && feature.startsWith("hosted."))
    )
      return false;
  const over = (day: string) => !(Date.parse(day) + 86_400_000 > of.now);
  const declared = word?.declared === true && !(word.until !== undefined && over(word.until));
  const barred = levels.some((l) => l.requires === "unavailable");
  if (declared && !barred) return levels.every((l) => l.trains !== "yes");
  if (levels.length === 0) return false;
  return levels.every((l) => {
    const fresh = l.expires === undefined || Date.parse(l.expires) > of.now;
    const proven = (l.evidence ?? []).some((e) => /^https:\/\/[^/]+\/./.test(e));
    if (!fresh || !of.trusted || !proven) return false;
    const sent = (l.controls ?? []).some(
      (x) => x.protocol === undefined || x.protocol === of.protocol,
    );
    if (l.zeroWhen === "control" && sent && of.protocol !== null && !barred)
      return l.trains !== "yes";
    const kept = l.retention?.kind;
    return l.trains === "no" && (kept === "zero" || (kept === "memory" && wanted === "required"));
  });
}

/** Candidates in the order of the calls, until one responds. */
function decided(
  list: readonly PolicyInputs[],
  wanted: Privacy,
  plant: Plant,
): readonly PolicyInputs[] {
  const fine = (of: PolicyInputs) => satisfies(wanted, effectivePolicy(of));
  if (plant === "once") return fine(list[0]!) ? list : [];
  return list.filter(fine);
}

export function decisions(cases: number, c: Chance, plant: Plant) {
  const wrong: string[] = [];
  let accepted = 0;
  for (let n = 0; n < cases; n++) {
    const wanted = c.one(["required", "strict"] as const);
    const list = Array.from({ length: 1 + c.below(3) }, () => facts(c));
    const asked = decided(list, wanted, plant);
    accepted += asked.length;
    for (const of of asked)
      if (!supported(of, wanted)) wrong.push(`decision ${n}: ${wanted} ${JSON.stringify(of)}`);
    // A request that the data allows is not rejected.
    if (plant === "")
      for (const of of list)
        if (supported(of, wanted) && !asked.includes(of))
          wrong.push(`decision ${n}: refused though supported, ${wanted} ${JSON.stringify(of)}`);
  }
  return { wrong, accepted };
}

// ── over sockets ─────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Providers with zero retention, by generation: odd ones have every declaration, and in even ones
 * `clean-messages` has lost it.
 */
const compliant = (provider: string, wanted: Privacy, generation: number): boolean =>
  provider === "demo" ||
  (provider.startsWith("clean-") && !(provider === "clean-messages" && generation % 2 === 0)) ||
  (provider === "memory-chat" && wanted === "required");

const ALIASES: Readonly<Record<string, readonly string[]>> = {
  "keeps-first": ["keeps-gemini/model", "clean-messages/model", "clean-chat/model"],
  "clean-first": ["clean-gemini/model", "keeps-messages/model", "clean-responses/model"],
  "fails-over": [
    "clean-responses/model",
    "keeps-chat/model",
    "memory-chat/model",
    "keeps-responses/model",
  ],
  "all-keep": ["keeps-chat/model", "lapsed-messages/model", "keeps-responses/model"],
  nested: ["all-keep", "clean-first"],
};
const DRAWN: Readonly<Record<string, readonly string[]>> = {
  pictures: ["keeps-images/draw", "clean-images/draw"],
  vectors: ["keeps-embeddings/vectors", "clean-embeddings/vectors"],
  voices: ["keeps-speech/voice", "clean-speech/voice"],
  ranks: ["keeps-rerank/rank", "clean-rerank/rank"],
  judges: ["keeps-moderations/judge", "clean-moderations/judge"],
  bases: ["keeps-completions/base", "clean-completions/base"],
  ears: ["keeps-transcriptions/ear", "clean-transcriptions/ear"],
};

function yaml(up: ZdrUpstreams, generation: number, plant: Plant): string {
  const aliases = Object.entries({ ...ALIASES, ...DRAWN }).map(([name, list]) => {
    const order = generation % 2 === 0 ? list.toReversed() : list;
    return `  ${name}: { candidates: [${order.join(", ")}], fallback_on: [overloaded, timeout, upstream] }`;
  });
  const providers = providersOf(up);
  const planted = {
    "": "",
    once: `, { use: "${join(import.meta.dirname, "../mutants/stale-privacy.ts")}", with: { url: "${up.keeps.url}" } }`,
    forge: `, { use: "${join(import.meta.dirname, "../mutants/privacy-bypass.ts")}" }`,
    store: `, { use: "${join(import.meta.dirname, "../mutants/privacy-bypass.ts")}", with: { store: true } }`,
  }[plant];
  return `# generation ${generation}
frontends: ${FRONTENDS}
middleware: [auth, zdr, limits, usage${planted}]
store: memory
${
  generation % 2 === 0
    ? providers.replace(/^( {2}clean-messages: .*)declared: true/m, "$1declared: false")
    : providers
}models:
${aliases.join("\n")}
`;
}

interface Case {
  readonly n: number;
  readonly door: EntryPoint;
  readonly model: string;
  readonly level: Privacy;
  readonly headers: Record<string, string>;
  readonly body: object;
}

const SINGLE = PROTOCOLS.flatMap((to) =>
  ["keeps", "clean", "lapsed"].map((who) => `${who}-${to}/model`),
);
const CHATS = [
  ...SINGLE,
  "memory-chat/model",
  "demo/echo",
  ...Object.keys(ALIASES),
  ...Object.keys(ALIASES),
];
/** Endpoints without streams, and their requests. */
const WHOLE: { readonly [D in EntryPoint]?: readonly string[] } = {
  images: ["keeps-images/draw", "clean-images/draw", "lapsed-images/draw", "pictures"],
  edits: ["keeps-images/draw", "clean-images/draw", "lapsed-images/draw", "pictures"],
  rerank: ["keeps-rerank/rank", "clean-rerank/rank", "lapsed-rerank/rank", "ranks", "demo/rerank"],
  moderations: [
    "keeps-moderations/judge",
    "clean-moderations/judge",
    "lapsed-moderations/judge",
    "judges",
    "demo/moderate",
  ],
  completions: [
    "keeps-completions/base",
    "clean-completions/base",
    "lapsed-completions/base",
    "bases",
    "demo/complete",
  ],
  embeddings: [
    "keeps-embeddings/vectors",
    "clean-embeddings/vectors",
    "lapsed-embeddings/vectors",
    "vectors",
    "demo/embed",
  ],
  speech: [
    "keeps-speech/voice",
    "clean-speech/voice",
    "lapsed-speech/voice",
    "voices",
    "demo/speech",
  ],
  transcriptions: [
    "keeps-transcriptions/ear",
    "clean-transcriptions/ear",
    "lapsed-transcriptions/ear",
    "ears",
    "demo/transcribe",
  ],
};
/** A request's order for the upstreams: fail, disconnect, or quote it in an error. */
const FATES = [
  "",
  "",
  "",
  "fail=clean",
  "fail=keeps",
  "fail=clean fail=keeps",
  "cut=clean",
  "quote=clean",
];
const STATE: readonly object[] = [
  { store: true },
  { previous_response_id: "resp_1" },
  { background: true },
];

function nextCase(c: Chance, n: number, keys: ReadonlyMap<Privacy, string>): Case {
  const door: EntryPoint = c.often(0.35)
    ? c.one(Object.keys(WHOLE) as EntryPoint[])
    : c.one(PROTOCOLS);
  const whole = WHOLE[door];
  const model = c.one(whole ?? CHATS);
  const byKey = c.one(LEVELS);
  const header = c.one([undefined, undefined, "required", "required", "strict", "true", "off"]);
  const asked = header === undefined ? "off" : header === "true" ? "required" : (header as Privacy);
  const level = LEVELS[Math.max(LEVELS.indexOf(byKey), LEVELS.indexOf(asked))]!;
  const body = ENTRY_POINTS[door].body(model, `case=${n}. ${c.one(FATES)}`, !whole && c.often(0.5));
  return {
    n,
    door,
    model,
    level,
    headers: { ...headersOf(door, keys.get(byKey)!), ...(header && { "service-zdr": header }) },
    body: { ...body, ...(!whole && c.often(0.08) && c.one(STATE)) },
  };
}

interface Came {
  readonly of: Case;
  readonly status: number;
  readonly generation: number;
  readonly receipt: string;
  readonly said: string | null;
}

async function ask(url: string, of: Case): Promise<Came> {
  const answer = await fetch(url + pathOf(of.door, of.body), {
    method: "POST",
    headers: of.headers,
    body: encodeBody(of.door, of.body),
  });
  const came = {
    of,
    status: answer.status,
    generation: Number(answer.headers.get("x-tollgate-generation")),
    receipt: answer.headers.get("service-zdr-policy") ?? "",
    said: answer.headers.get("service-zdr"),
  };
  await answer.text().catch(() => "");
  return came;
}

const CLIENTS = 6;

async function traffic(of: { requests: number; chanced: Chance; plant: Plant }) {
  await using up = await startZdrUpstreams();
  const dir = await mkdtemp(join(tmpdir(), "tollgate-zdr-"));
  let gateway: Daemon | undefined;
  const all: Case[] = [];
  const came: Came[] = [];
  try {
    gateway = await startDaemon({ yaml: yaml(up, 1, of.plant), dir });
    const keys = new Map<Privacy, string>();
    for (const privacy of LEVELS)
      keys.set(
        privacy,
        ((await gateway.ask("keys.create", { name: privacy, privacy })) as { secret: string })
          .secret,
      );
    for (let n = 0; n < of.requests; n++) all.push(nextCase(of.chanced, n, keys));
    let at = 0;
    let generation = 1;
    const { url } = gateway;
    const client = async () => {
      while (at < all.length) {
        const one = all[at++]!;
        // During the requests, the config is changed and restored.
        if (one.n % Math.ceil(of.requests / 5) === 0 && one.n > 0) {
          await gateway!.write(yaml(up, ++generation, of.plant));
          // The others continue in the meantime.
          await gateway!.ask("reload");
        }
        came.push(await ask(url, one));
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    return { ...judged(all, came, up), reloads: new Set(came.map((c) => c.generation)).size - 1 };
  } finally {
    gateway?.kill("SIGKILL");
    await gateway?.exit;
    await rm(dir, { recursive: true, force: true });
  }
}

function judged(all: readonly Case[], came: readonly Came[], { keeps, clean }: ZdrUpstreams) {
  const wrong: string[] = [];
  const generations = new Map(came.map((c) => [c.of.n, c.generation]));
  let bytes = 0;
  let heard = 0;
  for (const [name, up] of [
    ["keeps", keeps],
    ["clean", clean],
  ] as const)
    for (const asked of up.requests) {
      const found = /case=(\d+)\./.exec(asked.body.toString());
      if (!found) continue;
      const of = all[Number(found[1])]!;
      if (of.level === "off") continue;
      heard++;
      const provider = asked.path.split("/")[1]!;
      const generation = generations.get(of.n) ?? 1;
      if (name === "keeps" || !compliant(provider, of.level, generation)) {
        bytes += asked.body.length;
        wrong.push(
          `case ${of.n} (${of.level}, ${of.door}, ${of.model}) reached ${provider}, generation ${generation}`,
        );
      }
      if (/"store"\s*:\s*true|name="store"/.test(asked.body.toString()))
        wrong.push(`case ${of.n}: ${provider} was asked to store`);
    }
  let accepted = 0;
  let refused = 0;
  for (const { of, status, generation, receipt, said } of came) {
    const name = `case ${of.n} (${of.level}, ${of.door}, ${of.model}): ${status}, ${receipt}`;
    if (receipt === "" || said === null) wrong.push(`${name}: no receipt`);
    if (of.level === "off") continue;
    if (said !== "enforced") wrong.push(`${name}: says ${said}`);
    if (status === 403) refused++;
    if (status !== 200) continue;
    accepted++;
    const [, provider = "", kept = ""] =
      /^([^/]+)\/[^;]*;retention=([^;]+);basis=/.exec(receipt) ?? [];
    if (kept !== "zero" && !(kept === "memory" && of.level === "required"))
      wrong.push(`${name}: no such promise`);
    if (!compliant(provider, of.level, generation))
      wrong.push(`${name}: the data does not support it`);
  }
  const under = came.filter(({ of }) => of.level !== "off");
  // Both cases must occur, or the result means nothing.
  const doors = (status: number) =>
    new Set(under.filter((one) => one.status === status).map(({ of }) => of.door)).size;
  return {
    wrong,
    counts: {
      under: under.length,
      heard,
      accepted,
      refused,
      "doors-open": doors(200),
      "doors-shut": doors(403),
      "bytes-kept": bytes,
    },
  };
}

export async function zdr(of: {
  cases: number;
  requests: number;
  plant: Plant;
  seed: number;
  say: (line: string) => void;
}): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const pure = decisions(of.cases, chanced, of.plant);
  of.say(`${of.cases} decisions, ${pure.accepted} of them yes, ${pure.wrong.length} wrong`);
  const { wrong, counts, reloads } = await traffic({
    requests: of.requests,
    chanced,
    plant: of.plant,
  });
  return {
    wrong: [...wrong, ...pure.wrong],
    counts: { cases: of.cases, yes: pure.accepted, requests: of.requests, ...counts, reloads },
    seed: of.seed,
  };
}

export const rig: Rig = {
  options: { cases: 100_000, requests: 2_000, plant: "", seed: Date.now() % 1e6 },
  run: ({ cases, requests, plant, seed }, say) =>
    zdr({
      cases: Number(cases),
      requests: Number(requests),
      plant: plant as Plant,
      seed: Number(seed),
      say,
    }),
};
