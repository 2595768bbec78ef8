// Clients that disconnect at a random byte, by FIN, by RST, or by closing one direction. The
// upstream call ends immediately, and the call has a row that counts what was sent.
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { LedgerEntry } from "tollgate/plugin";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { startBillingUpstream, priced, PRICED, encodeScript } from "../money/billing-upstream.ts";
import { createChance, type Rig, type RigResult } from "../rig.ts";
import { percentile } from "../load/load-generator.ts";
import { PROVIDERS } from "../load/traffic.ts";

const yaml = (url: string) => `
frontends: [chat-completions, messages, responses]
middleware: [auth, limits, { use: usage, with: { label_headers: [x-rig] } }]
store: memory
providers:
  chat: { use: openai-compatible, with: { base_url: "${url}/chat/v1", api_key: k }, ${PRICED} }
  messages: { use: anthropic-compatible, with: { base_url: "${url}/messages/v1", api_key: k }, ${PRICED} }
  responses: { use: openai, with: { base_url: "${url}/responses/v1", api_key: k }, ${PRICED.replace("{ model: {", "{ model: { protocols: [responses],")} }
`;

const PATHS = ["/v1/chat/completions", "/v1/messages", "/v1/responses"] as const;
const WORDS = 150;
/** An upstream call that does not end within this time was forgotten. */
const GONE_MS = 2_000;
/** For all but one in a hundred, on an idle machine. */
const LET_GO_MS = 100;
const WAYS = ["fin", "rst", "half"] as const;
type Way = (typeof WAYS)[number];
/**
 * Text that may be in transit when a client disconnects. On a busy machine, all that it has not
 * read.
 */
const ON_THE_WAY = 60;

export interface HangupsOptions {
  readonly times: number;
  readonly seed: number;
  readonly clients: number;
  /** Upstream checks late whether the call ended: the checker must find this. */
  readonly mutant?: "keeps-upstream";
}

export async function hangups(of: HangupsOptions): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const wrong: string[] = [];
  await using upstream = await startBillingUpstream();
  const dir = await mkdtemp(join(tmpdir(), "tollgate-leave-"));
  const daemon = await startDaemon({ yaml: yaml(upstream.up.url), dir });
  const left = new Map<string, Left>();
  try {
    let next = 0;
    const lane = async () => {
      while (next < of.times) {
        const tag = `d${next++}`;
        left.set(
          tag,
          await leave(
            daemon,
            tag,
            chanced.one(PATHS),
            `${chanced.one(PROVIDERS)}/model`,
            chanced.below(20_000),
            chanced.one(WAYS),
          ),
        );
      }
    };
    await Promise.all(Array.from({ length: of.clients }, lane));
    const until = performance.now() + GONE_MS;
    const open = () => upstream.bill.filter(({ asked }) => asked.state === "open");
    while (open().length > 0 && performance.now() < until) await sleep(20);
    for (const { tag } of open()) wrong.push(`${tag}: upstream was not let go`);
    const lateBy = upstream.bill.flatMap(({ tag, asked }) =>
      asked.abortedAt === undefined || !left.has(tag)
        ? []
        : [Math.max(0, asked.abortedAt - left.get(tag)!.at) + (of.mutant ? 2 * LET_GO_MS : 0)],
    );
    const p99 = percentile(lateBy, 0.99);
    if (p99 > LET_GO_MS)
      wrong.push(`upstream was let go ${p99.toFixed(0)} ms after its client left`);
    await sleep(200);

    const rows = new Map<string, LedgerEntry>();
    let after: string | null = null;
    do {
      const page = (await daemon.ask("ledger.entries", {
        ...(after !== null && { after }),
        limit: 1_000,
      })) as unknown as {
        items: LedgerEntry[];
        next?: string;
      };
      for (const entry of page.items) {
        if (entry.kind !== "settle") continue;
        const tag = entry.labels["x-rig"]!;
        if (rows.has(tag)) wrong.push(`${tag}: two rows`);
        rows.set(tag, entry);
      }
      after = page.next ?? null;
    } while (after !== null);

    let cut = 0;
    for (const { tag, asked, usage } of upstream.bill) {
      const row = rows.get(tag);
      if (!row) {
        wrong.push(`${tag}: billed, and no row`);
        continue;
      }
      const owes = usage();
      if (row.state === "void") wrong.push(`${tag}: upstream was asked, and the row is void`);
      if (row.state === "exact") {
        if (BigInt(row.costNano!) !== priced(owes))
          wrong.push(`${tag}: exact ${row.costNano}, billed ${priced(owes)}`);
        continue;
      }
      cut++;
      if (row.state !== "estimated" && row.state !== "void")
        wrong.push(`${tag}: left early, and ${row.state}`);
      // Words have five to six bytes, and an estimate has three bytes per token: never less than
      // was sent, and never far above.
      const output = row.usage.output ?? 0;
      const made = owes.output ?? 0;
      const heard = left.get(tag)?.heard ?? 0;
      const [least, most] = [Math.min(heard, made - ON_THE_WAY), made * 3 + 10];
      if (row.state === "estimated" && (output < least || output > most))
        wrong.push(
          `${tag}: ${output} counted, ${made} made, ${heard} heard, ${asked.bytesSent} bytes sent`,
        );
    }
    return {
      wrong,
      counts: { times: of.times, cut, rows: rows.size, p99: `${p99.toFixed(0)}ms` },
      seed: of.seed,
    };
  } finally {
    await daemon.stop();
    await rm(dir, { recursive: true, force: true });
  }
}

interface Left {
  readonly at: number;
  /** Words that the client received. */
  readonly heard: number;
}

/** Reads this many bytes of the body, and disconnects. */
function leave(
  at: Daemon,
  tag: string,
  path: string,
  model: string,
  bytes: number,
  way: Way,
): Promise<Left> {
  const words = encodeScript({ tag, words: WORDS, gap: 1 });
  const body = path.endsWith("responses")
    ? { model, stream: true, input: words }
    : { model, stream: true, max_tokens: 500, messages: [{ role: "user", content: words }] };
  return new Promise((resolve) => {
    let text = "";
    let wentAt = 0;
    const go = () => {
      if (wentAt > 0) return;
      wentAt = performance.now();
      if (way === "rst") req.socket?.resetAndDestroy();
      else if (way === "fin") req.destroy();
      // It closes its sending side and keeps reading, which counts as a disconnect.
      else req.socket?.end();
    };
    // Some do not even wait for the first byte.
    if (bytes < 300) setTimeout(go, bytes / 10).unref();
    const req = request(
      `${at.url}${path}`,
      {
        method: "POST",
        agent: false,
        headers: {
          "content-type": "application/json",
          "x-rig": tag,
          ...(path === "/v1/messages"
            ? { "x-api-key": at.key }
            : { authorization: `Bearer ${at.key}` }),
        },
      },
      (res) => {
        res.on("data", (chunk: Buffer) => {
          text += chunk.toString("latin1");
          if (text.length >= bytes) go();
        });
        res.on("error", () => {});
      },
    );
    req.on("error", () => {});
    req.on("close", () => {
      resolve({ at: wentAt || performance.now(), heard: text.match(/word\d/g)?.length ?? 0 });
    });
    req.end(JSON.stringify(body));
  });
}

export const rig: Rig = {
  options: { times: 2_000, seed: Date.now() % 1e6, clients: 8 },
  run: ({ times, seed, clients }) =>
    hangups({ times: Number(times), seed: Number(seed), clients: Number(clients) }),
};
