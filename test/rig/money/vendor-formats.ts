// The formats of single vendors, for the billing upstream: the response of each, and its bill.
import {
  eventStreamResponse,
  jsonResponse,
  type ScriptedResponse,
  type UpstreamRequest,
} from "tollgate/testing";
import type { Usage } from "tollgate/plugin";

export const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Models that generate and edit images, each in its own format. */
export const EDITORS = [
  "painters/gpt-image-2",
  "nanos/gemini-3-pro-image",
  "groks/grok-imagine-image",
  "fluxes/flux-kontext-pro",
] as const;
export const EMBEDDERS = [
  "cohere/embed-v4.0",
  "voyage/voyage-3.5",
  "mistral/mistral-embed",
  "ollama/nomic-embed-text",
] as const;
export const RANKERS = ["cohere/rerank-v3.5", "voyage/rerank-2.5", "vllm/bge-reranker"] as const;
export const JUDGES = ["mistral/mistral-moderation-latest"] as const;
export const BASES = ["deepseek/base"] as const;

const priced = (kind: string, line: string) => `{ operation: ${kind}, price: { ${line} } }`;
const DRAWN = priced("image", "images: 0.04");
const READ = priced("embedding", "input: 3");

/** Entries under `providers` in gateway.yaml. */
export const vendors = (url: string): string => `
  painters: { use: openai, with: { base_url: "${url}/painters/v1", api_key: k }, models: { gpt-image-2: ${DRAWN} } }
  nanos: { use: google, with: { base_url: "${url}/nanos", api_key: k }, models: { gemini-3-pro-image: ${priced("image", "input: 3, image_out: 30")} } }
  groks: { use: xai, with: { base_url: "${url}/groks/v1", api_key: k }, models: { grok-imagine-image: ${DRAWN} } }
  fluxes: { use: bfl, with: { base_url: "${url}/fluxes/v1", api_key: k } }
  cohere: { use: cohere, with: { base_url: "${url}/cohere/compatibility/v1", api_key: k }, models: { embed-v4.0: ${READ}, rerank-v3.5: ${priced("rerank", "searches: 0.002")} } }
  voyage: { use: voyage, with: { base_url: "${url}/voyage/v1", api_key: k }, models: { voyage-3.5: ${READ}, rerank-2.5: ${priced("rerank", "input: 3")} } }
  mistral: { use: mistral, with: { base_url: "${url}/mistral/v1", api_key: k }, models: { mistral-embed: ${READ}, mistral-moderation-latest: ${priced("moderation", "input: 3")} } }
  ollama: { use: ollama, with: { base_url: "${url}/ollama/v1" }, models: { nomic-embed-text: ${READ} } }
  vllm: { use: vllm, with: { base_url: "${url}/vllm/v1" }, models: { bge-reranker: ${priced("rerank", "input: 3")} } }
  deepseek: { use: deepseek, with: { base_url: "${url}/deepseek", api_key: k }, models: { base: ${priced("completion", "input: 3, cache_read: 0.3, output: 15")} } }`;

interface Sold {
  readonly answer: ScriptedResponse;
  readonly usage: Usage;
}

/** Undefined: its format is shared. `input`: the input tokens that it reports. */
export function sold(asked: UpstreamRequest, input: number): Sold | undefined {
  const { path } = asked;
  const drawn = drawnFor(asked);
  if (drawn)
    return {
      answer: drawn,
      // One counts its input tokens.
      usage: path.startsWith("/nanos/") ? { input: 5, image_out: 1_120 } : { images: 1 },
    };
  if (path.endsWith("/v2/embed")) {
    const meta = { billed_units: { input_tokens: input } };
    return {
      answer: jsonResponse({ id: "e1", embeddings: { float: [[0.5]] }, meta }),
      usage: { input },
    };
  }
  if (path.endsWith("/api/embed"))
    return {
      answer: jsonResponse({ embeddings: [[0.5]], prompt_eval_count: input }),
      usage: { input },
    };
  if (!path.endsWith("/rerank") || !/^\/(voyage|vllm)\//.test(path)) return undefined;
  const { documents } = asked.json() as { readonly documents: readonly string[] };
  const scores = documents.map((_, index) => ({ index, relevance_score: 1 / (index + 1) }));
  const usage = { total_tokens: input };
  const said = path.startsWith("/vllm/")
    ? { id: "r1", results: scores, usage }
    : { object: "list", data: scores, usage };
  return { answer: jsonResponse(said), usage: { input } };
}

/** An image in each format. A job returns its later URL. */
function drawnFor({ path, headers, body }: UpstreamRequest): ScriptedResponse | undefined {
  const said = /\/images\/(generation|edit)s$/.exec(path);
  if (said) {
    if (!/"stream":true|name="stream"\r\n\r\ntrue/.test(body.toString("latin1")))
      return jsonResponse({ created: 1, data: [{ b64_json: PNG }] });
    const type = `image_${said[1]}.completed`;
    const event = { type, b64_json: PNG, created_at: 1 };
    return eventStreamResponse([`event: ${type}\ndata: ${JSON.stringify(event)}\n\n`]);
  }
  if (path.startsWith("/nanos/")) {
    const parts = [{ inlineData: { mimeType: "image/png", data: PNG } }];
    const drawn = {
      candidates: [{ content: { role: "model", parts }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 1_120 },
    };
    return path.endsWith(":streamGenerateContent")
      ? eventStreamResponse([`data: ${JSON.stringify(drawn)}\r\n\r\n`])
      : jsonResponse(drawn);
  }
  return path.startsWith("/fluxes/")
    ? jsonResponse({ id: "j", polling_url: `http://${headers.host}/fluxes/job`, cost: 4 })
    : undefined;
}

/** Requests that follow a job. */
export const AFTERWARDS = {
  "GET /fluxes/job": ({ headers }: UpstreamRequest) =>
    jsonResponse({
      status: "Ready",
      result: { sample: `http://${headers.host}/fluxes/picture.png` },
    }),
  "GET /fluxes/picture.png": {
    headers: { "content-type": "image/png" },
    body: Buffer.from(PNG, "base64"),
  },
} as const;
