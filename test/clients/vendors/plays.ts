// The vendors' own SDKs for embeddings and reranking, and OpenAI's for Azure, with models of every
// protocol behind the gateway.
import assert from "node:assert/strict";
import type { Check } from "tollgate/testing";
import { vectorOf } from "../../e2e/operations/embedding-vendors.ts";
import { countsOf } from "../counts.ts";
import { CHECK, EMBEDS, four, HELLO, RANKS, TALKS, type Four } from "../four.ts";
import type { Cast, Play } from "../clients.ts";
import { installed, type Package } from "../install.ts";

// These packages are not installed during type checks.
type Any = any; // oxlint-disable-line typescript/no-explicit-any

const COHERE: Package = { name: "cohere-ai", version: "8.1.0", main: "index.js" };
const VOYAGE: Package = { name: "voyageai", version: "0.4.0", main: "dist/cjs/index.js" };
const LANGCHAIN: Package = { name: "@langchain/cohere", version: "1.0.5", main: "dist/index.js" };

const QUERY = "Where is the harbour?";
const DOCUMENTS = ["By the old town", "Rain over the sea", "The harbour is in the west"];
const ORDER = [2, 0, 1];
const TEXTS = ["A harbour at dusk", "Rain over Oslo"];

interface Asking {
  readonly at: Four;
  readonly model: string;
  readonly check: string;
}

/** One check of every one of these models, identified in the ledger by its name. */
const each = (
  client: string,
  what: string,
  models: { readonly [provider: string]: string },
  at: Four,
  run: (of: Asking) => Promise<unknown>,
): Check[] =>
  Object.entries(models).map(([provider, model]) => {
    const check = `${client}: ${what} on ${provider}`;
    return { name: check, run: async () => void (await run({ at, model, check })) };
  });

const play = (
  title: string,
  names: readonly string[],
  cast: (at: Four) => Promise<readonly Check[]>,
): Play => ({
  names: [...names, "vendors"],
  title,
  async cast(): Promise<Cast> {
    const at = await four();
    return {
      checks: await cast(at),
      [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
    };
  },
});
const titleOf = ({ name, version }: Package) => `${name} ${version}`;

/** As a Cohere client counts them, with one row in the ledger. */
async function billed({ at, check }: Asking, searches?: number): Promise<void> {
  const rows = await at.billed(check);
  assert.equal(rows.length, 1, "one call, one row");
  if (searches !== undefined && rows[0]!.searches !== undefined)
    assert.equal(rows[0]!.searches, searches);
}

const cohere = play(titleOf(COHERE), ["cohere-ai"], async (at) => {
  const { CohereClient, CohereClientV2 } = (await import(await installed(COHERE))) as Any;
  const options = ({ check }: Asking, token = at.key) => ({
    token,
    environment: at.url,
    maxRetries: 0,
    headers: { [CHECK]: check },
  });
  const told = { headers: {} as Record<string, string>, maxRetries: 0 };
  const asked = (of: Asking) => ({ ...told, headers: { [CHECK]: of.check } });
  const ranked = async (of: Asking, client: Any, more: object) => {
    const answer = await client.rerank(
      { model: of.model, query: QUERY, documents: DOCUMENTS, topN: 2, ...more },
      asked(of),
    );
    assert.deepEqual(
      answer.results.map(({ index }: Any) => index),
      ORDER.slice(0, 2),
    );
    assert.equal(typeof answer.results[0].relevanceScore, "number");
    await billed(of, answer.meta?.billedUnits?.searchUnits);
  };
  return [
    ...each("cohere-ai", "v2 rerank", RANKS, at, (of) =>
      ranked(of, new CohereClientV2(options(of)), {}),
    ),
    ...each("cohere-ai", "v1 rerank", RANKS, at, (of) =>
      ranked(of, new CohereClient(options(of)), { returnDocuments: true }),
    ),
    ...each("cohere-ai", "a spent budget", RANKS, at, async (of) => {
      const client = new CohereClientV2(options(of, await at.spent()));
      await assert.rejects(
        client.rerank({ model: of.model, query: QUERY, documents: DOCUMENTS }, asked(of)),
        /429|budget/i,
      );
    }),
  ];
});

const voyage = play(titleOf(VOYAGE), ["voyageai"], async (at) => {
  const { VoyageAIClient } = (await import(await installed(VOYAGE))) as Any;
  const client = (path: string) =>
    new VoyageAIClient({ apiKey: at.key, environment: `${at.url}${path}` });
  const asked = (of: Asking) => ({ headers: { [CHECK]: of.check }, maxRetries: 0 });
  return [
    ...each("voyageai", "embed", EMBEDS, at, async (of) => {
      const { data, usage } = await client("/v1").embed(
        { model: of.model, input: TEXTS, inputType: "document" },
        asked(of),
      );
      assert.deepEqual(
        data.map(({ embedding }: Any) => embedding),
        TEXTS.map((text) => vectorOf(text)),
      );
      const [row] = await at.billed(of.check);
      assert.equal(usage.totalTokens, countsOf(row!).input);
    }),
    ...each("voyageai", "rerank", RANKS, at, async (of) => {
      const { data } = await client("/voyage/v1").rerank(
        { model: of.model, query: QUERY, documents: DOCUMENTS, topK: 2 },
        asked(of),
      );
      assert.deepEqual(
        data.map(({ index }: Any) => index),
        ORDER.slice(0, 2),
      );
      assert.equal(typeof data[0].relevanceScore, "number");
      await billed(of);
    }),
  ];
});

const langchain = play(`CohereRerank of ${titleOf(LANGCHAIN)}`, ["cohere-rerank"], async (at) => {
  const [{ CohereRerank }, { CohereClient }] = await Promise.all([
    import(await installed(LANGCHAIN)) as Promise<Any>,
    import(await installed(COHERE)) as Promise<Any>,
  ]);
  return each("cohere-rerank", "compressDocuments", RANKS, at, async ({ model }) => {
    const client = new CohereClient({ token: at.key, environment: at.url });
    const rerank = new CohereRerank({ client, model, topN: 2 });
    const documents = DOCUMENTS.map((pageContent) => ({ pageContent, metadata: {} }));
    const found = await rerank.compressDocuments(documents, QUERY);
    assert.deepEqual(
      found.map(({ pageContent }: Any) => pageContent),
      ORDER.slice(0, 2).map((index) => DOCUMENTS[index]),
    );
  });
});

const azure = play("AzureOpenAI of openai", ["azure"], async (at) => {
  const { AzureOpenAI } = await import("openai");
  const client = (of: Asking, more: object = {}) =>
    new AzureOpenAI({
      apiKey: at.key,
      apiVersion: "2025-04-01-preview",
      endpoint: at.url,
      maxRetries: 0,
      defaultHeaders: { [CHECK]: of.check },
      ...more,
    });
  const ask = (of: Asking) => ({
    model: of.model,
    messages: [{ role: "user" as const, content: "Hello, wörld 🌍" }],
  });
  return [
    ...each("azure", "chat by the model's name", TALKS, at, async (of) => {
      const { choices, usage } = await client(of).chat.completions.create(ask(of));
      assert.equal(choices[0]!.message.content, HELLO);
      const [row] = await at.billed(of.check);
      assert.equal(usage!.prompt_tokens, countsOf(row!).input);
    }),
    ...each("azure", "chat by a deployment, streamed", TALKS, at, async (of) => {
      const stream = await client(of, { deployment: of.model }).chat.completions.create({
        ...ask(of),
        model: "",
        stream: true,
      });
      let text = "";
      for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
      assert.equal(text, HELLO);
    }),
    ...each("azure", "embeddings", EMBEDS, at, async (of) => {
      const { data } = await client(of).embeddings.create({ model: of.model, input: TEXTS });
      assert.deepEqual(
        data.map(({ embedding }) => embedding),
        TEXTS.map((text) => vectorOf(text)),
      );
    }),
  ];
});

export const VENDORS: readonly Play[] = [cohere, voyage, langchain, azure];
