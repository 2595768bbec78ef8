// Each operation by each SDK from each wire that answers it: whole, streamed, given up, and refused by its key, by its budget and
// under Service-ZDR. What the ledger books is what the upstream bills, and what is refused costs nothing and is asked of no provider.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { createOpenAI } from "@ai-sdk/openai";
import {
  embedMany,
  generateImage,
  generateSpeech,
  generateText,
  streamText,
  transcribe,
  type ModelMessage,
} from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { digest } from "../../src/lib/key.ts";
import { startGateway, type Daemon } from "../kit/daemon.ts";
import { until } from "../kit/waits.ts";
import { biller, billing, FRONTENDS, PNG, priced, wished, type Biller } from "../rig/biller.ts";

const KEYS = { alice: "alice-key", narrow: "narrow-key", poor: "poor-key" } as const;
/** A wait that is given up long before. */
const LONG_MS = 20_000;

let bills: Biller;
let gateway: Daemon;
beforeAll(async () => {
  bills = await biller();
  gateway = await startGateway({
    yaml: `
store: { use: memory }
attempts: { target: 1 }
frontends: ${FRONTENDS}
middleware:
  - use: auth
    with:
      keys:
        - { id: alice, digest: "${digest(KEYS.alice)}" }
        - { id: narrow, digest: "${digest(KEYS.narrow)}", models: ["demo/*"] }
        - { id: poor, digest: "${digest(KEYS.poor)}", limits: [{ unit: usd, max: "0.00000001", per: total }] }
  - zdr
  - limits
  - { use: usage, with: { label_headers: [x-rig] } }
providers:${billing(bills.up.url)}
`,
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await bills[Symbol.asyncDispose]();
});

interface Asked {
  readonly model: string;
  readonly prompt: string;
  readonly key: string;
  readonly headers: Record<string, string>;
  readonly signal: AbortSignal | undefined;
}
type Ask = (of: Asked) => Promise<unknown>;

const js = ({ key }: Asked) =>
  new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 });
const given = ({ headers, signal }: Asked) => ({ headers, ...(signal && { signal }) });
const events = async (stream: AsyncIterable<unknown>) => {
  for await (const _ of stream);
};
const sound = (words: string) => new File([words.padEnd(31 * 750)], "a.wav");
const picture = () => Buffer.from(PNG, "base64");

const ai = ({ key }: Asked) => createOpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key });
const likewise = ({ key }: Asked) =>
  createOpenAICompatible({ name: "team", baseURL: `${gateway.url}/v1`, apiKey: key });
const once = ({ headers, signal }: Asked) => ({
  maxRetries: 0,
  headers,
  ...(signal && { abortSignal: signal }),
});
const talk = (prompt: string): ModelMessage[] => [{ role: "user", content: prompt }];
async function flowing(asked: ReturnType<typeof streamText>) {
  for await (const part of asked.fullStream) if (part.type === "error") throw part.error;
  // An answer that was given up just ends there.
  if ((await asked.finishReason) === "error") throw new Error("it ended in an error");
}

interface Operation {
  readonly models: readonly string[];
  /** By the SDK and how it is asked. */
  readonly ways: { readonly [way: string]: Ask };
}

const OPERATIONS: { readonly [name: string]: Operation } = {
  chat: {
    models: ["chat/model", "messages/model", "responses/model", "gemini/model"],
    ways: {
      "openai js, whole": (of) =>
        js(of).chat.completions.create(
          { model: of.model, messages: [{ role: "user", content: of.prompt }] },
          given(of),
        ),
      "openai js, streamed": async (of) =>
        events(
          await js(of).chat.completions.create(
            { model: of.model, stream: true, messages: [{ role: "user", content: of.prompt }] },
            given(of),
          ),
        ),
      "AI SDK, whole": (of) =>
        generateText({ model: ai(of).chat(of.model), messages: talk(of.prompt), ...once(of) }),
      "AI SDK, streamed": (of) =>
        flowing(
          streamText({
            model: ai(of).chat(of.model),
            messages: talk(of.prompt),
            onError() {},
            ...once(of),
          }),
        ),
    },
  },
  completions: {
    models: ["bases/base"],
    ways: {
      "openai js, whole": (of) =>
        js(of).completions.create({ model: of.model, prompt: of.prompt }, given(of)),
      "openai js, streamed": async (of) =>
        events(
          await js(of).completions.create(
            { model: of.model, prompt: of.prompt, stream: true },
            given(of),
          ),
        ),
      "AI SDK, whole": (of) =>
        generateText({
          model: likewise(of).completionModel(of.model),
          prompt: of.prompt,
          ...once(of),
        }),
      "AI SDK, streamed": (of) =>
        flowing(
          streamText({
            model: likewise(of).completionModel(of.model),
            prompt: of.prompt,
            onError() {},
            ...once(of),
          }),
        ),
    },
  },
  embeddings: {
    models: ["vectors/vec"],
    ways: {
      "openai js": (of) =>
        js(of).embeddings.create({ model: of.model, input: of.prompt }, given(of)),
      "AI SDK": (of) =>
        embedMany({ model: ai(of).embedding(of.model), values: [of.prompt], ...once(of) }),
    },
  },
  rerank: {
    models: ["ranks/rank"],
    ways: {
      // This SDK has no word for it.
      "openai js": (of) =>
        js(of).post("/rerank", {
          body: { model: of.model, query: of.prompt, documents: ["one", "two"] },
          ...given(of),
        }),
    },
  },
  moderations: {
    models: ["judges/judge"],
    ways: {
      "openai js": (of) =>
        js(of).moderations.create({ model: of.model, input: of.prompt }, given(of)),
    },
  },
  speech: {
    models: ["voices/voice"],
    ways: {
      "openai js": async (of) =>
        (
          await js(of).audio.speech.create(
            { model: of.model, input: of.prompt, voice: "alloy" },
            given(of),
          )
        ).arrayBuffer(),
      "AI SDK": (of) =>
        generateSpeech({
          model: ai(of).speech(of.model),
          text: of.prompt,
          voice: "alloy",
          ...once(of),
        }),
    },
  },
  transcriptions: {
    models: ["ears/ear"],
    ways: {
      "openai js": (of) =>
        js(of).audio.transcriptions.create({ model: of.model, file: sound(of.prompt) }, given(of)),
      "AI SDK": async (of) =>
        transcribe({
          model: ai(of).transcription(of.model),
          audio: new Uint8Array(await sound(of.prompt).arrayBuffer()),
          ...once(of),
        }),
    },
  },
  generations: {
    models: ["pictures/draw"],
    ways: {
      "openai js": (of) =>
        js(of).images.generate(
          { model: of.model, prompt: of.prompt, response_format: "b64_json" },
          given(of),
        ),
      "AI SDK": (of) =>
        generateImage({ model: likewise(of).imageModel(of.model), prompt: of.prompt, ...once(of) }),
    },
  },
  edits: {
    models: ["pictures/draw"],
    ways: {
      "openai js": (of) =>
        js(of).images.edit(
          {
            model: of.model,
            prompt: of.prompt,
            image: new File([picture()], "one.png", { type: "image/png" }),
          },
          given(of),
        ),
      "AI SDK": (of) =>
        generateImage({
          model: likewise(of).imageModel(of.model),
          prompt: { text: of.prompt, images: [picture()] },
          ...once(of),
        }),
    },
  },
};

const CELLS = Object.entries(OPERATIONS).flatMap(([operation, { models, ways }]) =>
  Object.entries(ways).flatMap(([way, ask]) =>
    models.map((model) => [`${operation}, ${way}, ${model}`, { model, ask }] as const),
  ),
);

async function settled(tag: string): Promise<any[]> {
  const { items } = (await gateway.ask("ledger.entries", { limit: 1_000 })) as any;
  return items.filter((row: any) => row.kind === "settle" && row.labels["x-rig"] === tag);
}
async function rowOf(tag: string): Promise<any> {
  let rows: any[] = [];
  await until(async () => (rows = await settled(tag)).length > 0);
  expect(rows).toHaveLength(1);
  return rows[0];
}
const billed = (tag: string) => bills.bill.filter((one) => one.tag === tag);

let made = 0;
interface Wanted {
  readonly gap?: number;
  readonly key?: string;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}
function asking(model: string, { gap = 1, key = KEYS.alice, headers, signal }: Wanted = {}) {
  const tag = `grid.${made++}`;
  const prompt = wished({ tag, words: 9, gap });
  const asked: Asked = { model, prompt, key, headers: { "x-rig": tag, ...headers }, signal };
  return { tag, asked };
}

const statusOf = (run: Promise<unknown>): Promise<unknown> =>
  run.then(
    () => "answered",
    (problem: any) => problem.status ?? problem.statusCode ?? problem,
  );

describe.each(CELLS)("%s", (_, { model, ask }) => {
  it("is answered, and costs what its upstream bills", async () => {
    const { tag, asked } = asking(model);
    await ask(asked);
    const row = await rowOf(tag);
    expect(billed(tag)).toHaveLength(1);
    expect(row.state).toBe("exact");
    expect(row.costNano).toBe(String(priced(billed(tag)[0]!.usage())));
  });

  it("is given up: its upstream is let go of, and there is a row", async () => {
    const away = new AbortController();
    const { tag, asked } = asking(model, { gap: LONG_MS, signal: away.signal });
    const run = ask(asked).catch(() => {});
    await until(() => billed(tag).length > 0);
    away.abort();
    await run;
    expect(await rowOf(tag)).toMatchObject({ state: "estimated", outcome: "canceled" });
    await until(() => billed(tag)[0]!.asked.state !== "open");
    expect(billed(tag)[0]!.asked.state).toBe("aborted");
  });

  it("is refused by its key, by its budget and under Service-ZDR, before anybody is asked", async () => {
    for (const [wanted, status] of [
      [{ key: KEYS.narrow }, 403],
      [{ key: KEYS.poor }, 429],
      [{ headers: { "service-zdr": "required" } }, 403],
      [{ key: "no-such-key" }, 401],
    ] as const) {
      const { tag, asked } = asking(model, wanted);
      expect([wanted, await statusOf(ask(asked))]).toEqual([wanted, status]);
      expect([billed(tag), await settled(tag)]).toEqual([[], []]);
    }
  });
});

it("all that was answered costs what all upstreams bill", async () => {
  const { items } = (await gateway.ask("ledger.entries", { limit: 1_000 })) as any;
  const exact = items.filter((row: any) => row.kind === "settle" && row.state === "exact");
  const booked = exact.reduce((sum: bigint, row: any) => sum + BigInt(row.costNano), 0n);
  const tags = new Set(exact.map((row: any) => row.labels["x-rig"]));
  const due = bills.bill.filter(({ tag }) => tags.has(tag));
  expect(exact).toHaveLength(CELLS.length);
  expect(due).toHaveLength(CELLS.length);
  expect(booked).toBe(due.reduce((sum, one) => sum + priced(one.usage()), 0n));
});
