// Vertex on a loopback port, with the token endpoint: it validates each assertion with the
// account's public key and its own clock, tracks valid tokens, and keeps the reference bill.
import { createPublicKey, generateKeyPairSync, verify, type KeyObject } from "node:crypto";
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
import type { Usage } from "tollgate/plugin";

export interface FakeGoogle extends AsyncDisposable {
  readonly up: TestUpstream;
  readonly url: string;
  aheadMs: number;
  /** Valid tokens. New ones are `token-1`, `token-2`, … */
  readonly good: Set<string>;
  minted: number;
  /** Number of requests by a federated workload. */
  exchanged: number;
  /** No token is returned. */
  denies: boolean;
  says: ModelScript;
  chunks: Chunks | undefined;
  bend: ((answer: ScriptedResponse) => ScriptedResponse) | undefined;
  readonly next: ScriptedResponse[];
}

const pair = generateKeyPairSync("rsa", { modulusLength: 2048 });
export const PEM = pair.privateKey.export({ type: "pkcs8", format: "pem" }) as string;
export const EMAIL = "gateway@my-project.iam.gserviceaccount.com";
export const ACCOUNT = JSON.stringify({
  type: "service_account",
  project_id: "my-project",
  private_key_id: "key-1",
  private_key: PEM,
  client_email: EMAIL,
});

export async function fakeGoogle(): Promise<FakeGoogle> {
  const up = await startUpstream();
  const fake: FakeGoogle = {
    up,
    url: up.url,
    aheadMs: 0,
    good: new Set(),
    minted: 0,
    exchanged: 0,
    denies: false,
    says: say("Hello"),
    chunks: undefined,
    bend: undefined,
    next: [],
    [Symbol.asyncDispose]: () => up.close(),
  };
  const key = createPublicKey(pair.publicKey.export({ type: "spki", format: "pem" }) as string);
  up.setRoutes({
    "POST /sts": (asked) => exchanged(fake, asked),
    "POST /token": (asked) => dated(fake, token(fake, key, asked)),
    "*": (asked) => {
      const answer = refusal(fake, asked) ?? fake.next.shift() ?? answerTo(fake, asked);
      const cut = { ...answer, ...(fake.chunks !== undefined && { chunks: fake.chunks }) };
      return dated(fake, fake.bend ? fake.bend(cut) : cut);
    },
  });
  return fake;
}

const now = ({ aheadMs }: FakeGoogle): number => Date.now() + aheadMs;
const dated = (fake: FakeGoogle, answer: ScriptedResponse): ScriptedResponse => ({
  ...answer,
  headers: { date: new Date(now(fake)).toUTCString(), ...answer.headers },
});

function token(fake: FakeGoogle, key: KeyObject, asked: UpstreamRequest): ScriptedResponse {
  const form = new URLSearchParams(asked.body.toString());
  if (fake.denies) return jsonResponse({ error: "invalid_client" }, 401);
  const no = (words: string) =>
    jsonResponse({ error: "invalid_grant", error_description: words }, 400);
  if (form.get("grant_type") !== "urn:ietf:params:oauth:grant-type:jwt-bearer")
    return no("Wrong grant_type");
  const [head = "", body = "", signature = ""] = (form.get("assertion") ?? "").split(".");
  const signed = verify(
    "RSA-SHA256",
    Buffer.from(`${head}.${body}`),
    key,
    Buffer.from(signature, "base64url"),
  );
  if (!signed) return no("Invalid JWT Signature.");
  const read = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString());
  const { iss, scope, iat, exp } = read(body);
  if (read(head).alg !== "RS256" || iss !== EMAIL || !String(scope).includes("cloud-platform"))
    return no("Invalid JWT.");
  const seconds = now(fake) / 1000;
  if (iat > seconds + 60 || exp < seconds || exp - iat > 3600)
    return no(
      "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe.",
    );
  const made = `token-${++fake.minted}`;
  fake.good.add(made);
  return jsonResponse({ access_token: made, expires_in: 3599, token_type: "Bearer" });
}

/** Google's file for a workload of another cloud, which authenticates with a token in a file. */
export const federated = ({ url }: FakeGoogle, file: string) => ({
  type: "external_account",
  audience: "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/q",
  subject_token_type: "urn:ietf:params:oauth:token-type:jwt",
  token_url: `${url}/sts`,
  credential_source: { file },
});

function exchanged(fake: FakeGoogle, asked: UpstreamRequest): ScriptedResponse {
  const form = new URLSearchParams(asked.body.toString());
  if (form.get("subject_token") !== "federated-1")
    return jsonResponse({ error: "invalid_grant" }, 400);
  fake.exchanged++;
  const made = `token-${++fake.minted}`;
  fake.good.add(made);
  return jsonResponse({
    access_token: made,
    issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
    token_type: "Bearer",
    expires_in: 3600,
  });
}

const failed = (code: number, status: string, message: string): ScriptedResponse =>
  jsonResponse({ error: { code, status, message } }, code);

export const throttled = () => failed(429, "RESOURCE_EXHAUSTED", "Quota exceeded.");

function refusal(fake: FakeGoogle, asked: UpstreamRequest): ScriptedResponse | undefined {
  const said = asked.headers.authorization ?? "";
  if (asked.headers["x-goog-api-key"] === "express-key") return undefined;
  return fake.good.has(said.replace(/^Bearer /, ""))
    ? undefined
    : failed(401, "UNAUTHENTICATED", "Request had invalid authentication credentials.");
}

const PATH =
  /^\/(?:v1|v1beta1)(?:\/projects\/my-project\/locations\/([a-z0-9-]+))?\/(?:publishers\/(google|anthropic)\/models\/([^/:]+):(\w+)|endpoints\/openapi\/chat\/completions)$/;

function answerTo(fake: FakeGoogle, asked: UpstreamRequest): ScriptedResponse {
  const found = PATH.exec(asked.path);
  if (!found) return failed(404, "NOT_FOUND", `There is no ${asked.path}.`);
  const [, , publisher, model = "", verb = ""] = found;
  const body = asked.json();
  if (publisher === undefined)
    return fake.says.toProtocol("chat-completions", {
      stream: body.stream === true,
      model: body.model,
      body,
    });
  if (verb === "predict") return vectors(model, body);
  if (publisher === "google") return gemini(fake.says, verb, model);
  if (typeof body.anthropic_version !== "string")
    return failed(400, "INVALID_ARGUMENT", "anthropic_version: Field required");
  if (model === "count-tokens")
    return typeof body.model === "string"
      ? jsonResponse({ input_tokens: asked.body.length })
      : failed(400, "INVALID_ARGUMENT", "model: Field required");
  if ("model" in body)
    return failed(400, "INVALID_ARGUMENT", "model: Extra inputs are not permitted");
  if ((verb === "streamRawPredict") !== (body.stream === true))
    return failed(400, "INVALID_ARGUMENT", "stream does not go with this address.");
  return fake.says.toProtocol("messages", { stream: body.stream === true, model, body });
}

const usageOf = (u: Usage) => ({
  promptTokenCount: (u.input ?? 0) + (u.cache_read ?? 0),
  cachedContentTokenCount: u.cache_read ?? 0,
  candidatesTokenCount: (u.output ?? 0) - (u.reasoning ?? 0),
  thoughtsTokenCount: u.reasoning ?? 0,
});

export const vectorFor = (text: string, width: number): number[] =>
  Array.from({ length: width }, (_, i) => ((text.length + i * 7) % 11) / 8);

/**
 * Gemini's own model accepts one text, and the others several. An embedding has the model's width,
 * or a smaller one.
 */
function vectors(model: string, { instances, parameters = {} }: any): ScriptedResponse {
  const most = model.startsWith("gemini-") ? 1 : 250;
  if (!Array.isArray(instances) || instances.length > most)
    return failed(400, "INVALID_ARGUMENT", `At most ${most} instances.`);
  const { outputDimensionality: width = 8 } = parameters;
  let input = 0;
  const predictions = instances.map(({ content }: { content: string }) => {
    const count = content.split(" ").length;
    input += count;
    const statistics = { token_count: count, truncated: false };
    return { embeddings: { values: vectorFor(content, width), statistics } };
  });
  return { ...jsonResponse({ predictions }), billedUsage: { input } };
}

function gemini(
  { output: { items, usage } }: ModelScript,
  verb: string,
  model: string,
): ScriptedResponse {
  if (verb === "countTokens") return jsonResponse({ totalTokens: 7 });
  const parts = items.map((one) =>
    one.type === "call"
      ? {
          functionCall: { name: one.name, args: JSON.parse(one.args), id: one.id },
          thoughtSignature: "c2ln",
        }
      : one.type === "reasoning"
        ? { text: one.text, thought: true }
        : { text: one.text },
  );
  const chunk = (some: readonly object[], last: boolean) => ({
    candidates: [
      { content: { role: "model", parts: some }, index: 0, ...(last && { finishReason: "STOP" }) },
    ],
    modelVersion: model,
    responseId: "resp-1",
    ...(usage && { usageMetadata: usageOf(usage) }),
  });
  if (verb === "generateContent") {
    const body = JSON.stringify(chunk(parts, true));
    return {
      ...jsonResponse({}),
      body: usage ? { bytes: body, tells: usage } : body,
      ...(usage && { billedUsage: usage }),
    };
  }
  const bodies = parts.map((part, i) => {
    const bytes = `data: ${JSON.stringify(chunk([part], i === parts.length - 1))}\r\n\r\n`;
    return usage ? { bytes, tells: usage } : bytes;
  });
  return {
    headers: { "content-type": "text/event-stream" },
    body: bodies,
    framing: "chunked",
    ...(usage && { billedUsage: usage }),
  };
}
