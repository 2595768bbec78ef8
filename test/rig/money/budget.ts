// Concurrent requests on a budget for a few calls: a key's own budget, one of nested accounts in
// gateway.yaml, or one of a team's twenty keys inside its organization's smaller one, which
// commands created and move. Exactly that many are served. With a simulated power failure, never
// more.
import { formatLimit } from "../../../src/plugin/store/limit.ts";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "tollgate/plugin";
import { jsonResponse, say, startUpstream } from "tollgate/testing";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { spoken } from "./billing-upstream.ts";
import { PNG } from "./vendor-formats.ts";
import { createChance, type Rig, type RigResult } from "../rig.ts";

/**
 * Cost of one response in nano-dollars, reserved and billed alike: an image, forty spoken
 * characters, ten seconds of audio, a search, a moderation, or the forty tokens that each request
 * asks for.
 */
const EACH = 40_000_000;

/** Budget of a round's keys. */
type Shape = "own" | "file" | "store";
const SHAPES: readonly Shape[] = ["own", "file", "store"];
const shapeOf = (round: number): Shape => SHAPES[round % SHAPES.length]!;
/** Keys of a team. */
const KEYS = 20;

/** In the file: the value of the outer account, and an inner one that may not even have that. */
const accountsOf = (rounds: number, worth: number): string =>
  Array.from({ length: rounds }, (_, i) => {
    const limits = (most: number) =>
      `limits: [${formatLimit({ unit: "nano_usd", max: most * EACH, per: "total" })}]`;
    return shapeOf(i) !== "file"
      ? ""
      : `
  house-${i}: { ${limits(worth)} }
  team-${i}: { parent: house-${i}, ${limits(worth - 1)} }
  desk-${i}: { parent: team-${i} }`;
  }).join("");

const yaml = (url: string, accounts: string) => `
frontends: [gemini, images, speech, transcriptions, rerank, moderations, completions]
middleware: [auth, { use: limits, with: { hold: hard } }, usage]
store: { use: sqlite, with: { durability: process, ballast_mb: 0 } }
workers: 2
providers:
  pictures: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k, images: ["draw"], image_edits: true }, models: { draw: { operation: image, price: { images: 0.04 } } } }
  ranks: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k, rerank: ["rank"] }, models: { rank: { operation: rerank, price: { searches: 0.04 } } } }
  judges: { use: openai, with: { base_url: "${url}/v1", api_key: k }, models: { judge: { operation: moderation, price: { requests: 0.04 } } } }
  bases: { use: vllm, with: { base_url: "${url}/v1" }, models: { base: { operation: completion, price: { input: 0, output: 1000 } } } }
  chats: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k }, models: { chat: { price: { input: 0, output: 1000 } } } }
  google: { use: google, with: { base_url: "${url}", api_key: k }, models: { gemini-chat: { price: { input: 0, output: 1000 } } } }
  sounds: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k, speech: ["voice"], transcriptions: ["ear"] }, models: { voice: { operation: speech, price: { characters: 0.001 } }, ear: { operation: transcript, price: { seconds: 0.004 } } } }
accounts:${accounts || " {}"}
`;

/** Keys that share this budget, and changes of their accounts that do not affect it. */
interface Made {
  readonly secrets: readonly string[];
  move?(turn: number): Promise<unknown>;
}

async function made(daemon: Daemon, round: number, worth: number): Promise<Made> {
  const shape = shapeOf(round);
  if (shape === "store") return team(daemon, round, worth);
  const own = { limits: [formatLimit({ unit: "nano_usd", max: worth * EACH, per: "total" })] };
  const grants =
    shape === "own"
      ? [own]
      : [`house-${round}`, `team-${round}`, `desk-${round}`].map((account) => ({ account }));
  return { secrets: await Promise.all(grants.map((grant) => key(daemon, grant))) };
}

/**
 * The team's budget is a quarter larger than its organization's. Wherever the team is nested, the
 * organization's budget counts.
 */
async function team(daemon: Daemon, round: number, worth: number): Promise<Made> {
  const [org, wing, crew] = ["org", "wing", "crew"].map((id) => `${id}-${round}`) as [
    string,
    string,
    string,
  ];
  const limits = (most: number) => [
    formatLimit({ unit: "nano_usd", max: most * EACH, per: "total" }),
  ];
  const more = Math.ceil(worth * 1.25);
  await daemon.ask("accounts.create", { id: org, limits: limits(worth) });
  await daemon.ask("accounts.create", { id: wing, parent: org });
  await daemon.ask("accounts.create", { id: crew, parent: org, limits: limits(more) });
  return {
    secrets: await Promise.all(Array.from({ length: KEYS }, () => key(daemon, { account: crew }))),
    move: (turn) =>
      daemon.ask("accounts.update", { id: crew, parent: turn % 2 === 0 ? wing : org }),
  };
}

async function key(daemon: Daemon, grant: JsonObject): Promise<string> {
  const name = `round ${Math.random()}`;
  return ((await daemon.ask("keys.create", { name, ...grant })) as { secret: string }).secret;
}

/** Repeatedly until the requests end. Commands that a killed gateway cannot run are skipped. */
async function moving(of: Made, going: () => boolean): Promise<number> {
  let moves = 0;
  while (of.move && going()) {
    await of.move(moves).then(
      () => moves++,
      () => {},
    );
    await sleep(20);
  }
  return moves;
}

/**
 * A request that the busy gateway rejects is sent again, because it was rejected before the budget
 * check.
 */
async function ask(url: string, key: string, way: Way): Promise<number> {
  for (;;) {
    const { status, text } = await once(url, key, way);
    if (status !== 503 || !text.includes("gateway_overloaded")) return status;
    await sleep(50);
  }
}

/** The request, and the content of a complete response. */
interface Way {
  readonly path: string;
  readonly body: string | FormData;
  readonly whole: string;
}

/** For a text, at a thousand dollars per million. */
const TOKENS = 40;

/** All have the same cost. */
const WAYS: readonly Way[] = [
  {
    path: "images/generations",
    body: JSON.stringify({
      model: "pictures/draw",
      prompt: "a gate",
      response_format: "b64_json",
    }),
    whole: "b64_json",
  },
  {
    path: "audio/speech",
    body: JSON.stringify({ model: "sounds/voice", input: "la ".repeat(13) + "!", voice: "any" }),
    whole: "the end",
  },
  { path: "audio/transcriptions", body: heard(10), whole: '"text"' },
  { path: "images/edits", body: changed(), whole: "b64_json" },
  {
    path: "rerank",
    body: JSON.stringify({ model: "ranks/rank", query: "a gate", documents: ["one", "two"] }),
    whole: "relevance_score",
  },
  {
    path: "moderations",
    body: JSON.stringify({ model: "judges/judge", input: "a gate" }),
    whole: "flagged",
  },
  {
    path: "completions",
    body: JSON.stringify({ model: "bases/base", prompt: "a gate", max_tokens: TOKENS }),
    whole: "finish_reason",
  },
  ...["chats/chat", "google/gemini-chat"].map((model): Way => ({
    path: `models/${model}:generateContent`,
    body: JSON.stringify({
      contents: [{ parts: [{ text: "a gate" }] }],
      generationConfig: { maxOutputTokens: TOKENS },
    }),
    whole: "finishReason",
  })),
];

/** An input image. */
function changed(): FormData {
  const form = new FormData();
  form.set("model", "pictures/draw");
  form.set("prompt", "a gate");
  form.set("image", new Blob([Buffer.from(PNG, "base64")], { type: "image/png" }), "one.png");
  return form;
}

/** Audio without a duration in a header: it is reserved and billed by its bytes. */
function heard(seconds: number): FormData {
  const rate = 750;
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.write("WAVEdata", 8);
  head.writeUInt32LE(rate * seconds - 20, 16);
  const form = new FormData();
  form.set("model", "sounds/ear");
  form.set("file", new Blob([head, new Uint8Array(rate * seconds - head.length)]), "sound.wav");
  return form;
}

async function once(url: string, key: string, way: Way): Promise<{ status: number; text: string }> {
  try {
    const { path, body, whole } = way;
    const answer = await fetch(`${url}/v1/${path}`, {
      method: "POST",
      headers: {
        ...(typeof body === "string" && { "content-type": "application/json" }),
        authorization: `Bearer ${key}`,
      },
      body,
    });
    const text = await answer.text();
    return { status: answer.status === 200 && !text.includes(whole) ? 0 : answer.status, text };
  } catch {
    return { status: 0, text: "" };
  }
}

export async function budget(of: {
  rounds: number;
  /** The first round's number, which selects the budget of its keys. */
  from?: number;
  requests: number;
  worth: number;
  kills: boolean;
  seed: number;
}): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const wrong: string[] = [];
  let served = 0;
  let refused = 0;
  let moves = 0;
  await using up = await startUpstream({
    "POST /v1/images/generations": () => ({
      ...jsonResponse({ created: 1, data: [{ b64_json: "aGk=" }] }),
      delayMs: chanced.below(40),
      billedUsage: { images: 1 },
    }),
    "POST /v1/audio/speech": () => ({
      headers: { "content-type": "audio/mpeg" },
      body: ["la la la, ", "the end"],
      framing: "chunked",
      delayMs: chanced.below(40),
      billedUsage: { characters: 40 },
    }),
    "POST /v1/audio/transcriptions": () => ({
      ...jsonResponse({ text: "la la la" }),
      delayMs: chanced.below(40),
      billedUsage: { seconds: 10 },
    }),
    "POST /v1/images/edits": () => ({
      ...jsonResponse({ created: 1, data: [{ b64_json: "aGk=" }] }),
      delayMs: chanced.below(40),
      billedUsage: { images: 1 },
    }),
    "POST /v1/rerank": () => ({
      ...jsonResponse({
        id: "r1",
        results: [0, 1].map((index) => ({ index, relevance_score: 1 / (index + 1) })),
        meta: { billed_units: { search_units: 1 } },
      }),
      delayMs: chanced.below(40),
      billedUsage: { searches: 1 },
    }),
    "POST /v1/moderations": () => ({
      ...jsonResponse({
        id: "m1",
        results: [{ flagged: false, categories: {}, category_scores: {} }],
      }),
      delayMs: chanced.below(40),
      billedUsage: { requests: 1 },
    }),
    "POST /v1/completions": () => ({
      ...jsonResponse({
        id: "c1",
        object: "text_completion",
        created: 1,
        model: "base",
        choices: [{ text: " goes on", index: 0, logprobs: null, finish_reason: "length" }],
        usage: { prompt_tokens: 9, completion_tokens: TOKENS },
      }),
      delayMs: chanced.below(40),
      billedUsage: { output: TOKENS },
    }),
    "POST *": (asked) => ({
      ...spoken(say("goes on").usage({ input: 9, output: TOKENS }).finish("length"), asked),
      delayMs: chanced.below(40),
      billedUsage: { output: TOKENS },
    }),
    "GET *": jsonResponse({ data: [], models: [] }),
    "GET /v1/models": jsonResponse({ object: "list", data: [] }),
  });
  const dir = await mkdtemp(join(tmpdir(), "tollgate-budget-"));
  const { from = 0 } = of;
  const text = yaml(up.url, accountsOf(from + of.rounds, of.worth));
  let daemon = await startDaemon({ yaml: text, dir });
  try {
    for (let round = from; round < from + of.rounds; round++) {
      up.reset();
      const keys = await made(daemon, round, of.worth);
      const { secrets } = keys;
      const asking = (_: unknown, i: number) =>
        ask(daemon.url, secrets[i % secrets.length]!, WAYS[i % WAYS.length]!);
      const all = Array.from({ length: of.requests }, asking);
      let going = true;
      const moved = moving(keys, () => going);
      if (of.kills) {
        await sleep(200 + chanced.below(1_500));
        daemon.kill("SIGKILL");
        going = false;
        await Promise.all([...all, daemon.exit]);
        daemon = await startDaemon({ yaml: text, dir });
        // The rest of it, to the last image.
        all.push(...Array.from({ length: of.worth + 10 }, asking));
      }
      const answers = await Promise.all(all);
      going = false;
      moves += await moved;
      const count = (status: number) => answers.filter((each) => each === status).length;
      served += count(200);
      refused += count(429);
      const said = `round ${round}: ${count(200)} served, ${up.bills.length} billed`;
      if (up.bills.length > of.worth || count(200) > of.worth)
        wrong.push(`${said}: more than ${of.worth}`);
      if (!of.kills && (count(200) !== of.worth || count(200) + count(429) !== of.requests))
        wrong.push(`${said}, ${tally(answers)}: not exactly ${of.worth}`);
    }
  } finally {
    await daemon.stop();
    await rm(dir, { recursive: true, force: true });
  }
  return {
    wrong,
    counts: { rounds: of.rounds, served, refused, moves, kills: of.kills ? of.rounds : 0 },
    seed: of.seed,
  };
}

/** "50 × 200, 450 × 429". 0: no complete response. */
const tally = (answers: readonly number[]): string =>
  [...Map.groupBy(answers, (status) => status)]
    .map(([status, all]) => `${all.length} × ${status}`)
    .join(", ");

export const rig: Rig = {
  options: { rounds: 6, requests: 500, worth: 50, kills: 0, seed: Date.now() % 1e6 },
  run: ({ rounds, requests, worth, kills, seed }) =>
    budget({
      rounds: Number(rounds),
      requests: Number(requests),
      worth: Number(worth),
      kills: Number(kills) > 0,
      seed: Number(seed),
    }),
};
