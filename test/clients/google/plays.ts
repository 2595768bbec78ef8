// Google's JavaScript SDKs and frameworks based on them, with models of every protocol. Content
// that they cannot read between the chunks of a stream shows here.
import assert from "node:assert/strict";
import type { Check } from "tollgate/testing";
import type { Play } from "../clients.ts";
import { vectorOf } from "../../e2e/operations/embedding-vendors.ts";
import { countsOf } from "../counts.ts";
import { EMBEDS, four, HELLO, SILENCE_MS, TALKS, type Four } from "../four.ts";
import { GENAI_IN_PYTHON, pythonChecks } from "../python/cast.ts";
import { PICTURE } from "../scripts.ts";
import { ready, SDKS, type Asking, type GoogleClient, type Heard, type Loaded } from "./sdks.ts";

/**
 * For Google, the bytes of its own protocol are unchanged: the behavior of older clients is not
 * tested.
 */
const modelsFor = ({ older }: GoogleClient) =>
  Object.entries(TALKS).filter(([id]) => older !== true || id !== "mgem");

const REPORT = 'They say: Rain in Oslo. Rain in R"ome.';

export const GOOGLE: readonly Play[] = SDKS.map((client) => ({
  names: [client.name, "google"],
  title: `${client.package.name} ${client.package.version}`,
  async cast() {
    const loaded = await ready(client);
    const at = await four();
    return {
      checks: checksOf(client, loaded, at),
      [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
    };
  },
}));

/** All of them, including Python's, wait in parallel for models that are silent for 20 seconds. */
export const SILENCE: Play = {
  names: ["silence", "google", "python"],
  title: "20 s of silence, to all of Google's clients at once",
  async cast() {
    const at = await four();
    const clients = await Promise.all(SDKS.map(async (one) => [one, await ready(one)] as const));
    const inPython = await pythonChecks(GENAI_IN_PYTHON, at);
    const run = async () => {
      const began = performance.now();
      const waits = clients.flatMap(([client, loaded]) =>
        modelsFor(client).map(async ([provider, model]) => {
          const of = { at, model, check: `${client.name}: silence on ${provider}` };
          await told(at, of, await loaded.stream(of, "First be silent."), HELLO);
          assert.ok(performance.now() - began > SILENCE_MS, `${of.check}: nobody was silent`);
        }),
      );
      const { run: theirs } = inPython.checks.find(({ name }) => name.includes(" silence"))!;
      const ended = await Promise.allSettled([...waits, theirs()]);
      const failed = ended.flatMap((one) => (one.status === "rejected" ? [one.reason] : []));
      assert.deepEqual(failed.map(String), []);
    };
    return {
      checks: [
        { name: `silence: ${clients.length + 1} clients, ${Object.keys(TALKS).length} wires`, run },
      ],
      async [Symbol.asyncDispose]() {
        await inPython[Symbol.asyncDispose]();
        await at[Symbol.asyncDispose]();
      },
    };
  },
};

function checksOf(client: GoogleClient, loaded: Loaded, at: Four): Check[] {
  const rounds = modelsFor(client).flatMap(([provider, model]) => {
    const check = (what: string, run: (of: Asking) => Promise<unknown>): Check => {
      const name = `${client.name}: ${what} on ${provider}`;
      return { name, run: async () => void (await run({ at, model, check: name })) };
    };
    return [
      check("text", async (of) => told(at, of, await loaded.say(of, "Hello, wörld 🌍"), HELLO)),
      check("text, streamed", async (of) => told(at, of, await loaded.stream(of, "Hello"), HELLO)),
      check("tools", async (of) => assert.equal((await loaded.tools(of, false)).text, REPORT)),
      check("tools, streamed", async (of) =>
        assert.equal((await loaded.tools(of, true)).text, REPORT),
      ),
      check("schema", async (of) =>
        assert.deepEqual(await loaded.schema(of, "Which city?"), { city: "Oslo" }),
      ),
      // A chat sends each chunk of a turn as a separate content, which the scripted Gemini rejects
      // and Google accepts.
      ...(loaded.chat && provider !== "mgem"
        ? [
            check("chat, streamed", async (of) =>
              assert.deepEqual(await loaded.chat!(of, "Hello"), { texts: [HELLO, HELLO], kept: 2 }),
            ),
          ]
        : []),
      ...(loaded.thoughts
        ? [
            check("thoughts", async (of) =>
              assert.deepEqual(await loaded.thoughts!(of, "Hello"), {
                thought: "Hm, hm.",
                text: HELLO,
              }),
            ),
          ]
        : []),
      ...(client.older && client.name === "langchain"
        ? []
        : [
            check("picture", async (of) =>
              told(at, of, await loaded.say(of, "What is this?", { picture: PICTURE }), "A dot."),
            ),
          ]),
      check("a stream that breaks off", (of) =>
        aside(() =>
          assert.rejects(loaded.stream(of, "Please break off."), "It was taken for an answer."),
        ),
      ),
    ];
  });
  const TEXTS = ["A harbour at dusk", "Rain over Oslo"];
  const vectors = Object.entries(EMBEDS).map(([provider, model]): Check => {
    const name = `${client.name}: vectors on ${provider}`;
    return {
      name,
      async run() {
        const { several, one } = await loaded.vectors({ at, model, check: name }, TEXTS);
        assert.deepEqual(
          several,
          TEXTS.map((text) => vectorOf(text)),
        );
        assert.deepEqual(one, vectorOf(TEXTS[0]!));
      },
    };
  });
  const spent: Check = {
    name: `${client.name}: a spent budget`,
    async run() {
      const key = await at.spent();
      const of = { at: { url: at.url, key }, model: TALKS.mmsg, check: "spent" };
      await assert.rejects(loaded.say(of, "Hello"), /budget/i);
    },
  };
  return [...rounds, ...vectors, spent];
}

/** One of them also rejects an internal promise. */
async function aside(run: () => Promise<unknown>): Promise<void> {
  const ignored = () => {};
  process.on("unhandledRejection", ignored);
  try {
    await run();
    await new Promise((done) => setImmediate(done));
  } finally {
    process.off("unhandledRejection", ignored);
  }
}

async function told(at: Four, of: Asking, { text, counts }: Heard, due: string): Promise<void> {
  assert.equal(text, due);
  if (!counts) return;
  const [usage] = await at.billed(of.check);
  const { input, output } = countsOf(usage!);
  assert.deepEqual(counts, { input, output }, "its counts are the ledger's");
}
