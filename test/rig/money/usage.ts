// Usage is the same everywhere: in a client's `usage`, in the ledger row, and in its cost, for
// every protocol and provider, streaming or not, including hidden and estimated counts.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jsonResponse, say, think, startUpstream, type ModelScript } from "tollgate/testing";
import type { LedgerEntry, Usage } from "tollgate/plugin";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { priced, PRICED, spoken } from "./billing-upstream.ts";
import { createChance, type Rig, type RigResult } from "../rig.ts";
import { PROVIDERS } from "../load/traffic.ts";

const yaml = (url: string) => `
frontends: [chat-completions, messages, responses]
middleware: [auth, limits, { use: usage, with: { label_headers: [x-rig] } }]
store: memory
providers:
  chat: { use: openai-compatible, with: { base_url: "${url}/chat/v1", api_key: k }, ${PRICED} }
  messages: { use: anthropic-compatible, with: { base_url: "${url}/messages/v1", api_key: k }, ${PRICED} }
  responses: { use: openai, with: { base_url: "${url}/responses/v1", api_key: k }, ${PRICED.replace("{ model: {", "{ model: { protocols: [responses],")} }
  gemini: { use: google, with: { base_url: "${url}/gemini", api_key: k }, ${PRICED} }
`;

/** A client's usage, in terms common to the three protocols. */
interface Told {
  /** Caches included. */
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}

type Raw = Readonly<Record<string, any>>;

const READ: Readonly<Record<string, (usage: Raw) => Told>> = {
  "/v1/chat/completions": (u) => ({
    input: u["prompt_tokens"],
    cached: u["prompt_tokens_details"]?.cached_tokens ?? 0,
    output: u["completion_tokens"],
  }),
  "/v1/messages": (u) => ({
    input:
      u["input_tokens"] +
      (u["cache_read_input_tokens"] ?? 0) +
      (u["cache_creation_input_tokens"] ?? 0),
    cached: u["cache_read_input_tokens"] ?? 0,
    output: u["output_tokens"],
  }),
  "/v1/responses": (u) => ({
    input: u["input_tokens"],
    cached: u["input_tokens_details"]?.cached_tokens ?? 0,
    output: u["output_tokens"],
  }),
};

/** The last usage anywhere in the response. In a message's stream, earlier counts stay valid. */
function told(path: string, text: string, stream: boolean): Told | undefined {
  if (!stream) return JSON.parse(text).usage ? READ[path]!(JSON.parse(text).usage) : undefined;
  let usage: Raw | undefined;
  for (const line of text.split("\n")) {
    if (!line.startsWith("data: {")) continue;
    const event = JSON.parse(line.slice(6));
    const seen = event.usage ?? event.message?.usage ?? event.response?.usage;
    if (seen)
      usage = {
        ...usage,
        ...Object.fromEntries(Object.entries(seen).filter(([, v]) => v !== null)),
      };
  }
  return usage && READ[path]!(usage);
}

const inRow = (u: Usage): Told => ({
  input: (u.input ?? 0) + (u.cache_read ?? 0) + (u.cache_write_5m ?? 0) + (u.cache_write_1h ?? 0),
  cached: u.cache_read ?? 0,
  output: u.output ?? 0,
});

export async function sameUsage(of: { trials: number; seed: number }): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const wrong: string[] = [];
  const speeches = new Map<string, ModelScript>();
  await using up = await startUpstream({
    "POST /*": (asked) => spoken(speeches.get(/trial-\d+/.exec(asked.body.toString())![0])!, asked),
    "GET /*": jsonResponse({ object: "list", data: [] }),
  });
  const dir = await mkdtemp(join(tmpdir(), "tollgate-usage-"));
  const daemon = await startDaemon({ yaml: yaml(up.url), dir });
  let compared = 0;
  let hidden = 0;
  let estimated = 0;
  try {
    for (let trial = 0; trial < of.trials; trial++)
      for (const path of Object.keys(READ))
        for (const provider of [...PROVIDERS, "gemini"])
          for (const stream of [false, true]) {
            const name = `trial-${compared}`;
            const silent = chanced.often(0.25);
            const quiet = path.endsWith("completions") && stream && chanced.often(0.5);
            const usage: Usage = {
              input: 1 + chanced.below(5_000),
              cache_read: chanced.below(900),
              output: 1 + chanced.below(3_000),
            };
            const speech = chanced.often(0.5)
              ? say("Hello there, gate.")
              : think("Let me see.").say("Yes.");
            speeches.set(name, speech.usage(silent ? null : usage));
            const { text, status } = await ask(
              daemon,
              path,
              `${provider}/model`,
              name,
              stream,
              quiet,
            );
            const row = await rowOf(daemon, name);
            compared++;
            const where = `${path} on ${provider} ${stream ? "streamed" : "whole"}${silent ? ", silent upstream" : ""}${quiet ? ", hidden" : ""}`;
            if (status !== 200 || !row) {
              wrong.push(
                `${where}: status ${status}, ${row ? "a row" : "no row"} ${text.slice(0, 200)}`,
              );
              continue;
            }
            const seen = told(path, text, stream);
            if (quiet) hidden++;
            if (row.state === "estimated") estimated++;
            if (silent !== (row.state === "estimated")) wrong.push(`${where}: ${row.state}`);
            if (!silent && JSON.stringify(inRow(row.usage)) !== JSON.stringify(inRow(usage)))
              wrong.push(
                `${where}: row ${JSON.stringify(row.usage)}, upstream ${JSON.stringify(usage)}`,
              );
            // In both modes: the gateway estimates counts that an upstream omits.
            if (quiet ? seen !== undefined : !seen)
              wrong.push(`${where}: the client was told ${JSON.stringify(seen)}`);
            if (seen && JSON.stringify(seen) !== JSON.stringify(inRow(row.usage)))
              wrong.push(
                `${where}: client ${JSON.stringify(seen)}, row ${JSON.stringify(row.usage)}`,
              );
            if (BigInt(row.costNano!) !== priced(row.usage))
              wrong.push(`${where}: cost ${row.costNano}, counts make ${priced(row.usage)}`);
          }
  } finally {
    await daemon.stop();
    await rm(dir, { recursive: true, force: true });
  }
  return { wrong, counts: { compared, hidden, estimated }, seed: of.seed };
}

async function ask(
  at: Daemon,
  path: string,
  model: string,
  name: string,
  stream: boolean,
  quiet: boolean,
) {
  const words = path.endsWith("responses")
    ? { input: name }
    : { max_tokens: 3_000, messages: [{ role: "user", content: name }] };
  const more =
    path.endsWith("completions") && stream && !quiet
      ? { stream_options: { include_usage: true } }
      : {};
  const answer = await fetch(`${at.url}${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-rig": name,
      ...(path === "/v1/messages"
        ? { "x-api-key": at.key }
        : { authorization: `Bearer ${at.key}` }),
    },
    body: JSON.stringify({ model, stream, ...words, ...more }),
  });
  return { status: answer.status, text: await answer.text() };
}

const lastSeq = new WeakMap<Daemon, string>();

async function rowOf(at: Daemon, name: string): Promise<LedgerEntry | undefined> {
  const after = lastSeq.get(at);
  const { items } = (await at.ask("ledger.entries", {
    ...(after !== undefined && { after }),
    limit: 100,
  })) as unknown as {
    items: LedgerEntry[];
  };
  const row = items.find((entry) => entry.kind === "settle" && entry.labels["x-rig"] === name);
  if (row) lastSeq.set(at, String(row.seq));
  return row;
}

export const rig: Rig = {
  options: { trials: 20, seed: Date.now() % 1e6 },
  run: ({ trials, seed }) => sameUsage({ trials: Number(trials), seed: Number(seed) }),
};
