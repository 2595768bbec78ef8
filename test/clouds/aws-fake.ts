// Bedrock on a loopback port: it validates every signature with the vendor's own signer, has a
// clock and temporary keys, responds as configured, and keeps the reference bill.
import { createHash, createHmac } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";
import {
  jsonResponse,
  say,
  startUpstream,
  type Chunks,
  type ScriptedResponse,
  type ModelScript,
  type TestUpstream,
  type UpstreamRequest,
} from "tollgate/testing";
import { inConverse, inFrames, invoked } from "./aws-says.ts";

/** The hash in the form of the vendor's signer. */
class Sha256 {
  readonly #hash;
  constructor(key?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash =
      key === undefined
        ? createHash("sha256")
        : createHmac("sha256", key as NodeJS.ArrayBufferView);
  }
  update(data: Uint8Array): void {
    this.#hash.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
  reset(): void {}
}

export interface Signer {
  readonly id: string;
  readonly secret: string;
  readonly token?: string;
}

/** Headers that the vendor's own signer adds to a request. */
export async function officially(
  keys: Signer,
  of: {
    readonly method: string;
    readonly url: URL;
    readonly headers: Record<string, string>;
    readonly body: Buffer;
    readonly region: string;
    readonly service: string;
    readonly now: Date;
  },
): Promise<Record<string, string>> {
  const signer = new SignatureV4({
    service: of.service,
    region: of.region,
    sha256: Sha256 as never,
    // S3 is the only service whose signatures do not encode the path again.
    uriEscapePath: of.service !== "s3",
    credentials: {
      accessKeyId: keys.id,
      secretAccessKey: keys.secret,
      ...(keys.token && { sessionToken: keys.token }),
    },
  });
  const query: Record<string, string | string[]> = {};
  for (const name of new Set(of.url.searchParams.keys())) {
    const values = of.url.searchParams.getAll(name);
    query[name] = values.length === 1 ? values[0]! : values;
  }
  const signed = await signer.sign(
    {
      method: of.method,
      protocol: "https:",
      hostname: of.url.host,
      path: of.url.pathname,
      query,
      headers: of.headers,
      body: of.body,
    } as never,
    { signingDate: of.now },
  );
  return (signed as unknown as { headers: Record<string, string> }).headers;
}

/** An upstream for a gateway or an SDK. */
export interface FakeAws extends AsyncDisposable {
  readonly up: TestUpstream;
  readonly url: string;
  /** Offset of this service's clock from the machine's. */
  aheadMs: number;
  /** Accepted keys, and expired tokens. */
  readonly keys: Map<string, Signer>;
  readonly over: Set<string>;
  readonly bearers: Set<string>;
  /** Response of every model. */
  says: ModelScript;
  chunks: Chunks | undefined;
  /** Responses that are sent first, one by one. */
  readonly next: ScriptedResponse[];
  /** Changes an outgoing response. */
  bend: ((answer: ScriptedResponse) => ScriptedResponse) | undefined;
}

export const KEYS: Signer = { id: "AKIDEXAMPLE", secret: "secret-of-the-example" };
export const REGION = "eu-central-1";
export const MODEL = "us.amazon.nova-2-lite-v1:0";
export const CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";

export const refusing = (status: number, name: string, message: string): ScriptedResponse => ({
  ...jsonResponse({ message }, status),
  headers: { "content-type": "application/json", "x-amzn-errortype": `${name}:http://internal` },
});

export async function fakeAws(): Promise<FakeAws> {
  const up = await startUpstream();
  const fake: FakeAws = {
    up,
    url: up.url,
    aheadMs: 0,
    keys: new Map([[KEYS.id, KEYS]]),
    over: new Set(),
    bearers: new Set(["bedrock-api-key"]),
    says: say("Hello"),
    chunks: undefined,
    next: [],
    bend: undefined,
    [Symbol.asyncDispose]: () => up.close(),
  };
  up.setRoutes({
    "*": async (asked) => {
      const answer = (await refusal(fake, asked)) ?? fake.next.shift() ?? answerTo(fake, asked);
      const dated = {
        ...answer,
        headers: { date: new Date(now(fake)).toUTCString(), ...answer.headers },
        ...(fake.chunks !== undefined && { chunks: fake.chunks }),
      };
      return fake.bend ? fake.bend(dated) : dated;
    },
  });
  return fake;
}

const now = ({ aheadMs }: FakeAws): number => Date.now() + aheadMs;
const FIVE_MINUTES = 300_000;

async function refusal(
  fake: FakeAws,
  asked: UpstreamRequest,
): Promise<ScriptedResponse | undefined> {
  const said = asked.headers.authorization ?? "";
  if (said.startsWith("Bearer "))
    return fake.bearers.has(said.slice(7))
      ? undefined
      : refusing(403, "AccessDeniedException", "The bearer token is not valid.");
  const [, id, day, region, service, names] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, ?SignedHeaders=([^,]+), ?Signature=[0-9a-f]{64}$/.exec(
      said,
    ) ?? [];
  const keys = fake.keys.get(id ?? "");
  if (!keys || !day || !region || !service || !names)
    return refusing(
      403,
      "UnrecognizedClientException",
      "The security token included in the request is invalid.",
    );
  if (keys.token && fake.over.has(keys.token))
    return refusing(
      403,
      "ExpiredTokenException",
      "The security token included in the request is expired",
    );
  const stamp = String(asked.headers["x-amz-date"]);
  const at = Date.parse(
    stamp.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z"),
  );
  if (!(Math.abs(at - now(fake)) <= FIVE_MINUTES))
    return refusing(
      403,
      "InvalidSignatureException",
      `Signature expired: ${stamp} is now earlier than the service's time.`,
    );
  const headers = Object.fromEntries(
    names.split(";").map((name) => [name, String(asked.headers[name])]),
  );
  for (const name of ["x-amz-date", "x-amz-security-token"]) delete headers[name];
  const url = new URL(`http://${asked.headers.host}${asked.path}`);
  for (const [name, value] of asked.query) url.searchParams.append(name, value);
  const due = await officially(keys, {
    method: asked.method,
    url,
    headers,
    body: asked.body,
    region,
    service,
    now: new Date(at),
  });
  const squeezed = (text: string) => text.replaceAll(", ", ",");
  return squeezed(due["authorization"]!) === squeezed(said)
    ? undefined
    : refusing(
        403,
        "InvalidSignatureException",
        "The request signature we calculated does not match the signature you provided.",
      );
}

function answerTo(fake: FakeAws, asked: UpstreamRequest): ScriptedResponse {
  const [, encoded, verb] =
    /^\/model\/([^/]+)\/(converse|converse-stream|invoke|invoke-with-response-stream|count-tokens)$/.exec(
      asked.path,
    ) ?? [];
  const model = decodeURIComponent(encoded ?? "");
  const body = asked.body.length > 0 ? asked.json() : {};
  if (asked.path === "/rerank") return ranked(body);
  if (/^\/(?:openai|mantle)\//.test(asked.path)) return fake.says.toResponse(asked);
  if (body.guardrailConfig?.guardrailIdentifier === "blocks")
    fake.says = say("Not here.").finish("filtered").usage({ input: 3, output: 2 });
  switch (verb) {
    case "converse":
      return inConverse(fake.says);
    case "converse-stream":
      return inFrames(fake.says);
    case "count-tokens":
      return jsonResponse({ inputTokens: JSON.stringify(body).length });
    case "invoke":
      if (model.includes("titan-embed")) return titan(body);
      if (model.includes("cohere.embed")) return cohere(body);
      if (model.includes("nova-canvas")) return canvas(body);
      if (model.includes("stability.")) return stability(body);
      return claude(fake, body, model, false);
    case "invoke-with-response-stream":
      return claude(fake, body, model, true);
    default:
      return refusing(404, "UnknownOperationException", `There is no ${asked.path}.`);
  }
}

function claude(fake: FakeAws, body: any, model: string, stream: boolean): ScriptedResponse {
  for (const field of ["model", "stream"])
    if (field in body)
      return refusing(400, "ValidationException", `${field}: Extra inputs are not permitted`);
  if (typeof body.anthropic_version !== "string")
    return refusing(400, "ValidationException", "anthropic_version: Field required");
  return invoked(fake.says, model.replace(/^.*anthropic\./, "").replace(/-v\d+:\d+$/, ""), stream);
}

/** The same numbers for the same text. */
export const vectorFor = (text: string, width = 4): number[] =>
  Array.from({ length: width }, (_, i) => ((text.length + i * 7) % 11) / 8);

function titan({ inputText, dimensions }: any): ScriptedResponse {
  const input = inputText.split(" ").length;
  return {
    ...jsonResponse({ embedding: vectorFor(inputText, dimensions), inputTextTokenCount: input }),
    billedUsage: { input },
  };
}

/** The smallest image, with a larger size in its header. */
export const pictureOf = (width: number, height: number): string => {
  const head = Buffer.alloc(33);
  head.set([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]);
  head.writeUInt32BE(width, 16);
  head.writeUInt32BE(height, 20);
  return head.toString("base64");
};

const UNFIT =
  "This request has been blocked by our content filters. Please adjust your text prompt.";

/** A prompt states how many of its images a filter blocks. */
function canvas({ taskType, textToImageParams, imageGenerationConfig = {}, ...more }: any) {
  const { numberOfImages: n = 1, width = 1024, height = 1024, quality } = imageGenerationConfig;
  const known = ["standard", "premium", undefined].includes(quality);
  if (taskType !== "TEXT_IMAGE" || !known || n > 5 || Object.keys(more).length > 0)
    return refusing(400, "ValidationException", "Malformed input request");
  const text: string = textToImageParams.text;
  if (text === "unfit") return refusing(400, "ValidationException", UNFIT);
  const held = Math.min(n, Number(/hold (\d)/.exec(text)?.[1] ?? 0));
  const images = Array.from({ length: n - held }, () => pictureOf(width, height));
  const error =
    held > 0 &&
    `${held === n ? "All" : "Some"} of the generated images have been blocked by our content filters.`;
  return {
    ...jsonResponse({ images, ...(error && { error }) }),
    billedUsage: { images: images.length },
  };
}

function stability({ prompt, aspect_ratio: ratio = "1:1", ...more }: any): ScriptedResponse {
  const known = ["seed", "output_format", "negative_prompt", "mode"];
  if (Object.keys(more).some((field) => !known.includes(field)))
    return refusing(400, "ValidationException", "Malformed input request");
  if (prompt === "unfit") return jsonResponse({ finish_reasons: ["Filter reason: prompt"] });
  if (prompt === "broken") return jsonResponse({ finish_reasons: ["Inference error"] });
  const [width, height] = ratio.split(":").map(Number);
  const images = [pictureOf(width * 64, height * 64)];
  return {
    ...jsonResponse({ seeds: [1], finish_reasons: [null], images }),
    billedUsage: { images: 1 },
  };
}

function cohere({ texts, input_type: type, model }: any): ScriptedResponse {
  if (model !== undefined || typeof type !== "string")
    return refusing(400, "ValidationException", "Malformed input request");
  const input = texts.join(" ").split(" ").length;
  const said = jsonResponse({
    id: "e",
    embeddings: { float: texts.map((text: string) => vectorFor(text)) },
  });
  return {
    ...said,
    headers: { ...said.headers, "x-amzn-bedrock-input-token-count": String(input) },
    billedUsage: { input },
  };
}

function ranked({ sources, rerankingConfiguration: { bedrockRerankingConfiguration: how } }: any) {
  if (!how.modelConfiguration.modelArn.startsWith("arn:aws:bedrock:"))
    return refusing(400, "ValidationException", "modelArn is no ARN.");
  const results = sources
    .map((one: any, index: number) => ({
      index,
      relevanceScore: 1 / (1 + one.inlineDocumentSource.textDocument.text.length),
    }))
    .toSorted((a: any, b: any) => b.relevanceScore - a.relevanceScore)
    .slice(0, how.numberOfResults);
  return {
    ...jsonResponse({ results }),
    billedUsage: { searches: Math.ceil(sources.length / 100) },
  };
}
