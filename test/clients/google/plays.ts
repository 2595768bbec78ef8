// Google's SDKs in JavaScript and the frameworks that are built on them, in front of models of every protocol. What each of them
// cannot read between the chunks of a stream shows here.
import assert from "node:assert/strict";
import type { Check } from "tollgate/testing";
import type { Play } from "../clients.ts";
import { vectorOf } from "../../e2e/embeddings/vendors.ts";
import { countsOf } from "../counts.ts";
import { EMBEDS, four, HELLO, TALKS, type Four } from "../four.ts";
import { PICTURE } from "../scripts.ts";
import { ready, SDKS, type Asking, type GoogleClient, type Heard, type Loaded } from "./sdks.ts";

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

function checksOf(client: GoogleClient, loaded: Loaded, at: Four): Check[] {
  // To Google its bytes are its own: what they are worth there is not ours to judge.
  const models = Object.entries(TALKS).filter(([id]) => client.older !== true || id !== "mgem");
  const rounds = models.flatMap(([provider, model]) => {
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
      ...(client.older && client.name === "langchain"
        ? []
        : [
            check("picture", async (of) =>
              told(at, of, await loaded.say(of, "What is this?", { picture: PICTURE }), "A dot."),
            ),
          ]),
      check("20 s of silence", async (of) =>
        told(at, of, await loaded.stream(of, "First be silent."), HELLO),
      ),
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

/** One of them rejects a promise that it keeps to itself as well. */
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
