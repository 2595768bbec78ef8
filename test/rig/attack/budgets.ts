// Keys with a hard budget against a provider that interprets every cost field as generously as some
// backend does, and bills all of it: fields with other names, positions, and forms, and audio with
// false headers.
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { LedgerEntry, JsonObject } from "tollgate/plugin";
import { parseKey } from "../../../src/lib/api-key.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";
import { lies } from "../../unit/lib/sound-lies.ts";
import type { Fields } from "../money/generous-provider.ts";
import { OPERATIONS, request } from "../money/generous-operations.ts";
import type { Chance } from "../rig.ts";
import type { Attack } from "./target.ts";

const TOKENS = "limits: { context: 50000, output: 4096 }";
const CHAT = "{ input: 1, output: 10, searches: 0.01 }";
const yaml = (url: string) => `
frontends: [chat-completions, messages, responses, gemini, images, embeddings, rerank, completions, speech, transcriptions]
middleware: [auth, { use: limits, with: { hold: hard } }]
store: memory
shutdown: 2s
providers:
  chat: { use: openai-compatible, with: { base_url: "${url}/chat", api_key: k }, models: { m: { price: ${CHAT}, ${TOKENS} } } }
  messages: { use: anthropic-compatible, with: { base_url: "${url}/messages", api_key: k }, models: { m: { price: ${CHAT}, ${TOKENS} } } }
  responses: { use: openai, with: { base_url: "${url}/responses", api_key: k }, models: { m: { protocols: [responses], price: ${CHAT}, ${TOKENS} } } }
  gemini: { use: google, with: { base_url: "${url}/gemini", api_key: k }, models: { m: { price: ${CHAT}, ${TOKENS} } } }
  pictures: { use: openai-compatible, with: { base_url: "${url}/pictures", api_key: k, images: [pieces, tokens, area] }, models: { pieces: { operation: image, price: { images: 0.04 } }, tokens: { operation: image, price: { input: 5, image_out: 30 } }, area: { operation: image, price: { megapixels: 0.01 } } } }
  ranks: { use: openai-compatible, with: { base_url: "${url}/ranks", api_key: k, rerank: [searches, tokens] }, models: { searches: { operation: rerank, price: { searches: 0.002 } }, tokens: { operation: rerank, price: { input: 1 } } } }
  voices: { use: openai-compatible, with: { base_url: "${url}/voices", api_key: k, speech: [characters, tokens] }, models: { characters: { operation: speech, price: { characters: 0.000015 } }, tokens: { operation: speech, price: { input: 0.6, audio_out: 12 } } } }
  ears: { use: openai-compatible, with: { base_url: "${url}/ears", api_key: k, transcriptions: [m] }, models: { m: { operation: transcript, price: { seconds: 0.0001 } } } }
`;

/** A client's endpoint, and its request. */
interface Door {
  readonly path: string;
  readonly operation: string;
  readonly from: string;
  readonly models: readonly string[];
}
const CHATS = ["chat/m", "messages/m", "responses/m", "gemini/m"];
const DOORS: readonly Door[] = [
  { path: "/v1/chat/completions", operation: "chat", from: "chat", models: CHATS },
  { path: "/v1/messages", operation: "chat", from: "messages", models: CHATS },
  { path: "/v1/responses", operation: "chat", from: "responses", models: CHATS },
  { path: "/v1beta/models", operation: "chat", from: "gemini", models: CHATS },
  {
    path: "/v1/images/generations",
    operation: "drawn",
    from: "images",
    models: ["pictures/pieces", "pictures/tokens", "pictures/area"],
  },
  {
    path: "/v1/rerank",
    operation: "ranking",
    from: "rerank",
    models: ["ranks/searches", "ranks/tokens"],
  },
  {
    path: "/v1/audio/speech",
    operation: "spoken",
    from: "speech",
    models: ["voices/characters", "voices/tokens"],
  },
];

/**
 * Bills what the request orders, and confirms it: in chat with counts, elsewhere it accepts the
 * work and disconnects.
 */
async function provider() {
  const asked: { readonly path: string; readonly body: string }[] = [];
  const server = createServer((req, res) => {
    const pieces: Buffer[] = [];
    req.on("data", (piece: Buffer) => pieces.push(piece));
    req.on("end", () => {
      const path = req.url ?? "";
      res.setHeader("content-type", "application/json");
      if (req.method === "GET") return void res.end('{"object":"list","data":[]}');
      asked.push({ path, body: Buffer.concat(pieces).toString() });
      if (path.startsWith("/ears")) return void res.end('{"text":"la la la"}');
      res.statusCode = 400;
      res.end('{"error":{"message":"no","type":"invalid_request_error"}}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function keyed(
  daemon: Daemon,
): Promise<{ readonly secret: string; rows(): Promise<LedgerEntry[]> }> {
  const limits = ["usd=1000000/total"];
  const { secret } = (await daemon.ask("keys.create", { limits } as JsonObject)) as {
    secret: string;
  };
  const key = parseKey(secret)!.id;
  return {
    secret,
    async rows() {
      let rows: LedgerEntry[] = [];
      await until(async () => {
        const page = await daemon.ask("ledger.entries", { key, limit: 1_000 });
        const { items } = page as unknown as { items: LedgerEntry[] };
        rows = items.filter(({ kind }) => kind === "settle");
        return items.length === 2 * rows.length;
      });
      return rows;
    },
  };
}

const headers = (secret: string) => ({
  authorization: `Bearer ${secret}`,
  "x-api-key": secret,
  "x-goog-api-key": secret,
  "anthropic-version": "2023-06-01",
});

function asks(of: Chance, { path, operation, from, models }: Door): readonly [string, Fields] {
  const model = of.one(models);
  const gemini = from === "gemini";
  const body = request(OPERATIONS[operation]!, gemini ? "chat" : from, of);
  if (!gemini) return [path, { ...body, model }];
  const { messages: _, ...rest } = body;
  const contents = [{ role: "user", parts: [{ text: "a" }] }];
  return [`${path}/${model}:generateContent`, { ...rest, contents }];
}

/** The provider is the first segment of the path. */
const apiOf = (path: string): string => path.split("/")[1]!;

export const spelledAttack = (requests: number): Attack => ({
  name: `${requests} requests with money fields in other words`,
  async run({ chance }) {
    const wrong: string[] = [];
    await using up = await provider();
    await using daemon = await startDaemon({ yaml: yaml(up.url) });
    for (const door of DOORS)
      for (let left = Math.ceil(requests / DOORS.length); left > 0;) {
        // Few enough for one page of the ledger.
        const { secret, rows } = await keyed(daemon);
        const bills: (readonly [bigint, string])[] = [];
        for (let n = Math.min(left, 400); n > 0; n--, left--) {
          const [path, body] = asks(chance, door);
          up.asked.length = 0;
          const answer = await fetch(`${daemon.url}${path}`, {
            method: "POST",
            headers: { "content-type": "application/json", ...headers(secret) },
            body: JSON.stringify(body),
          });
          const told = await answer.text();
          if (answer.status >= 500) wrong.push(`${path}: ${answer.status} ${told.slice(0, 200)}`);
          for (const one of up.asked) {
            const sent = JSON.parse(one.body) as Fields;
            const model =
              String(body["model"] ?? "")
                .split("/")
                .at(-1) ?? "m";
            const bill = OPERATIONS[door.operation]!.bill(sent, apiOf(one.path), model);
            bills.push([bill, `${one.path} ${one.body.slice(0, 600)}`]);
          }
        }
        const held = (await rows()).map(({ holdNano }) => BigInt(holdNano ?? 0));
        if (held.length !== bills.length)
          wrong.push(`${door.path}: ${held.length} rows for ${bills.length} calls`);
        else
          for (const [i, [bill, what]] of bills.entries())
            if (held[i]! < bill) wrong.push(`held ${held[i]}, billed ${bill}: ${what}`);
      }
    return wrong;
  },
});

const SOUNDS = new URL("../../fixtures/sounds/", import.meta.url);

export const soundsAttack: Attack = {
  name: "sounds whose headers state less than they hold",
  async run() {
    const wrong: string[] = [];
    await using up = await provider();
    await using daemon = await startDaemon({ yaml: yaml(up.url) });
    for (const name of readdirSync(SOUNDS)) {
      const [, ms] = /-(\d+)ms\./.exec(name) ?? [];
      if (ms === undefined) continue;
      const file = readFileSync(new URL(name, SOUNDS));
      const { secret, rows } = await keyed(daemon);
      const told = lies(name.split(".").at(-1)!, file);
      for (const lie of told) {
        const form = new FormData();
        form.set("model", "ears/m");
        form.set("file", new Blob([new Uint8Array(lie.file)]), name);
        const init = { method: "POST", headers: headers(secret), body: form };
        const { status } = await fetch(`${daemon.url}/v1/audio/transcriptions`, init);
        if (status !== 200) wrong.push(`${name}, ${lie.what}: ${status}`);
      }
      const settled = await rows();
      for (const [i, { what, times }] of told.entries()) {
        const row = settled[i];
        const truth = BigInt(Math.floor((Number(ms) / 1_000) * times * 0.85) * 100_000);
        if (BigInt(row?.holdNano ?? 0) < truth || BigInt(row?.costNano ?? 0) < truth)
          wrong.push(
            `${name}, ${what}: held ${row?.holdNano}, billed ${row?.costNano} (${row?.state}) for ${truth}`,
          );
      }
    }
    return wrong;
  },
};
