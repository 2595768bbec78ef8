// Every vendor of embeddings on one scripted upstream: equal vectors for equal texts, each in the
// vendor's own format, with its bill.
import type { JsonObject } from "tollgate/plugin";
import {
  jsonResponse,
  type ScriptedReply,
  type ScriptedResponse,
  type UpstreamRequest,
} from "tollgate/testing";

/** Of a text: numbers that 32-bit floats represent exactly, so that no format loses a digit. */
export const vectorOf = (text: string, width = 8): number[] =>
  Array.from({ length: width }, (_, i) => Math.fround(Math.sin((i + 1) * (text.length + 1))));

/** A word is one token here. */
export const tokensIn = (texts: readonly unknown[]): number =>
  texts.reduce<number>(
    (sum, text) => sum + (typeof text === "string" ? text.split(" ").length : (text as []).length),
    0,
  );

const base64 = (numbers: readonly number[]): string => {
  const bytes = Buffer.alloc(numbers.length * 4);
  numbers.forEach((one, i) => bytes.writeFloatLE(one, i * 4));
  return bytes.toString("base64");
};

const textsOf = (said: unknown): unknown[] =>
  typeof said === "string" || typeof (said as unknown[])[0] === "number"
    ? [said]
    : (said as unknown[]);
const refused = (message: string) => jsonResponse({ error: { message } }, 400);

/** OpenAI's format. `forms`: whether it supports the format field. */
const listed =
  (
    usage: (tokens: number) => JsonObject,
    { forms = true, width = "dimensions" }: { forms?: boolean; width?: string } = {},
  ): ScriptedReply =>
  (asked) => {
    const body = asked.json();
    const texts = textsOf(body.input);
    const tokens = tokensIn(texts);
    return {
      ...jsonResponse({
        object: "list",
        data: texts.map((text, index) => {
          const numbers = vectorOf(String(text), body[width]);
          const packed = forms && body.encoding_format === "base64";
          return { object: "embedding", index, embedding: packed ? base64(numbers) : numbers };
        }),
        model: body.model,
        usage: usage(tokens),
      }),
      billedUsage: { input: tokens },
    };
  };

/** OpenAI's own, or that of a provider without the format field. */
export const embedding = (of: { forms?: boolean } = {}): ScriptedReply => listed(both, of);

/** Gemini's, which reports no counts. */
export const batchEmbedding = (asked: UpstreamRequest): ScriptedResponse => {
  const { requests } = asked.json();
  const texts = requests.map(({ content }: any) => content.parts[0].text);
  return {
    ...jsonResponse({
      embeddings: requests.map(({ outputDimensionality }: any, i: number) => ({
        values: vectorOf(texts[i], outputDimensionality),
      })),
    }),
    billedUsage: { input: tokensIn(texts) },
  };
};

/** The same for one content. */
export const oneEmbedding = (asked: UpstreamRequest): ScriptedResponse => {
  const { content, outputDimensionality } = asked.json();
  const { text } = content.parts[0];
  return {
    ...jsonResponse({ embedding: { values: vectorOf(text, outputDimensionality) } }),
    billedUsage: { input: tokensIn([text]) },
  };
};

const both = (n: number) => ({ prompt_tokens: n, total_tokens: n });

export interface Vendor {
  readonly name: string;
  readonly model: string;
  readonly yaml: string;
  readonly routes: { readonly [route: string]: ScriptedReply };
  /** It reports the tokens that it read. */
  readonly counts: boolean;
  readonly mode: "passthrough" | "translated";
}

const mounted = (use: string, path: string, more = "") =>
  `{ use: ${use}, with: { api_key: k, base_url: "up/${path}"${more} } }`;

export const VENDORS: readonly Vendor[] = [
  {
    name: "openai",
    model: "text-embedding-3-small",
    yaml: mounted("openai", "openai/v1"),
    routes: { "POST /openai/v1/embeddings": embedding() },
    counts: true,
    mode: "passthrough",
  },
  {
    // It ignores the unknown field.
    name: "older",
    model: "nomic-embed",
    yaml: mounted("openai-compatible", "older/v1", ', embeddings: ["nomic*"]'),
    routes: {
      "POST /older/v1/embeddings": embedding({ forms: false }),
      "GET /older/v1/models": jsonResponse({ data: [{ id: "nomic-embed" }, { id: "llama" }] }),
    },
    counts: true,
    mode: "passthrough",
  },
  {
    name: "mistral",
    model: "codestral-embed",
    yaml: mounted("mistral", "mistral/v1"),
    routes: {
      "POST /mistral/v1/embeddings": (asked) => {
        const strange = ["dimensions", "user", "input_type"].find((one) => one in asked.json());
        if (strange) return refused(`Extra inputs are not permitted: ${strange}`);
        const said = listed((n) => ({ ...both(n), completion_tokens: 0 }), {
          width: "output_dimension",
        });
        return (said as (asked: UpstreamRequest) => ScriptedResponse)(asked);
      },
    },
    counts: true,
    mode: "passthrough",
  },
  {
    name: "voyage",
    model: "voyage-3.5",
    yaml: mounted("voyage", "voyage/v1"),
    routes: {
      "POST /voyage/v1/embeddings": (asked) => {
        const { encoding_format: form, dimensions, input_type: task } = asked.json();
        if (form !== undefined && form !== "base64") return refused("encoding_format is not valid");
        if (dimensions !== undefined) return refused("dimensions is not valid");
        if (task !== undefined && task !== "query" && task !== "document")
          return refused("input_type is not valid");
        const said = listed((n) => ({ total_tokens: n }), { width: "output_dimension" });
        return (said as (asked: UpstreamRequest) => ScriptedResponse)(asked);
      },
    },
    counts: true,
    mode: "passthrough",
  },
  {
    name: "google",
    model: "gemini-embedding-001",
    yaml: mounted("google", "google"),
    routes: {
      "POST /google/v1beta/models/gemini-embedding-001:batchEmbedContents": batchEmbedding,
      "POST /google/v1beta/models/gemini-embedding-001:embedContent": oneEmbedding,
    },
    counts: false,
    mode: "translated",
  },
  {
    name: "cohere",
    model: "embed-v4.0",
    yaml: mounted("cohere", "cohere/compatibility/v1"),
    routes: {
      "POST /cohere/v2/embed": (asked) => {
        const { texts, input_type: task, embedding_types, output_dimension } = asked.json();
        if (task === undefined) return jsonResponse({ message: "input_type is required" }, 400);
        return {
          ...jsonResponse({
            id: "c1",
            embeddings: {
              [embedding_types[0]]: texts.map((text: string) => vectorOf(text, output_dimension)),
            },
            meta: { billed_units: { input_tokens: tokensIn(texts) } },
          }),
          billedUsage: { input: tokensIn(texts) },
        };
      },
    },
    counts: true,
    mode: "translated",
  },
  {
    name: "ollama",
    model: "all-minilm",
    yaml: mounted("ollama", "ollama/v1"),
    routes: {
      "GET /ollama/v1/models": jsonResponse({ data: [{ id: "all-minilm" }, { id: "llama3.2" }] }),
      "POST /ollama/api/embed": (asked) => {
        const { input, dimensions } = asked.json();
        const texts = textsOf(input);
        return {
          ...jsonResponse({
            model: "all-minilm",
            embeddings: texts.map((text) => vectorOf(String(text), dimensions)),
            prompt_eval_count: tokensIn(texts),
          }),
          billedUsage: { input: tokensIn(texts) },
        };
      },
    },
    counts: true,
    mode: "translated",
  },
];

/** Dollars per million tokens for every vendor here: a hundred nano-dollars each. */
export const NANO_A_TOKEN = 100;
const PRICE = "0.10";

export const providersFor = (up: string): string =>
  VENDORS.map(
    ({ name, model, yaml }) =>
      `  ${name}:\n    ${yaml
        .slice(2, -2)
        .replace("up/", `${up}/`)
        .replace(
          ", with: ",
          "\n    with: ",
        )}\n    models: { ${JSON.stringify(model)}: { operation: embedding, price: { input: "${PRICE}" } } }\n`,
  ).join("");
