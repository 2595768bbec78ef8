// An Azure resource on a loopback port: both APIs of OpenAI's protocols, Anthropic's API, Entra ID,
// and a managed identity, with the content filter's format and the reference bill.
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

export interface FakeAzure extends AsyncDisposable {
  readonly up: TestUpstream;
  readonly url: string;
  readonly good: Set<string>;
  minted: number;
  /** Requests to Entra ID and to the machine's identity endpoint. */
  readonly grants: string[];
  says: ModelScript;
  chunks: Chunks | undefined;
  bend: ((answer: ScriptedResponse) => ScriptedResponse) | undefined;
  readonly next: ScriptedResponse[];
}

export const KEY = "azure-key";

export async function fakeAzure(): Promise<FakeAzure> {
  const up = await startUpstream();
  const fake: FakeAzure = {
    up,
    url: up.url,
    good: new Set(),
    minted: 0,
    grants: [],
    says: say("Hello"),
    chunks: undefined,
    bend: undefined,
    next: [],
    [Symbol.asyncDispose]: () => up.close(),
  };
  up.setRoutes({
    "POST /tenant-1/oauth2/v2.0/token": (asked) => entra(fake, asked),
    "GET /identity": (asked) => machine(fake, asked),
    "*": (asked) => {
      const answer = refusal(fake, asked) ?? fake.next.shift() ?? answerTo(fake, asked);
      const cut = { ...answer, ...(fake.chunks !== undefined && { chunks: fake.chunks }) };
      return fake.bend ? fake.bend(cut) : cut;
    },
  });
  return fake;
}

function made(fake: FakeAzure): string {
  const token = `entra-${++fake.minted}`;
  fake.good.add(token);
  return token;
}

const SCOPES = new Set([
  "https://cognitiveservices.azure.com/.default",
  "https://ai.azure.com/.default",
]);

function entra(fake: FakeAzure, asked: UpstreamRequest): ScriptedResponse {
  const form = Object.fromEntries(new URLSearchParams(asked.body.toString()));
  const { grant_type: grant, client_id: client, scope = "" } = form;
  const proven = form["client_secret"] === "secret-1" || form["client_assertion"] === "federated-1";
  if (grant !== "client_credentials" || client !== "client-1" || !SCOPES.has(scope) || !proven)
    return jsonResponse(
      {
        error: "invalid_client",
        error_description: "AADSTS7000215: Invalid client secret provided.",
      },
      401,
    );
  fake.grants.push(
    form["client_assertion"] === undefined ? `secret ${scope}` : `federated ${scope}`,
  );
  return jsonResponse({ token_type: "Bearer", expires_in: 3599, access_token: made(fake) });
}

function machine(fake: FakeAzure, asked: UpstreamRequest): ScriptedResponse {
  if (asked.headers["metadata"] !== "true" || asked.headers["x-identity-header"] !== "header-1")
    return jsonResponse({ error: "invalid_request" }, 400);
  fake.grants.push(`machine ${asked.query.get("resource")}`);
  // A time as text, which is this service's only form.
  const ends = String(Math.floor(Date.now() / 1000) + 3600);
  return jsonResponse({ access_token: made(fake), expires_on: ends, token_type: "Bearer" });
}

const failed = (status: number, code: string, message: string): ScriptedResponse =>
  jsonResponse({ error: { code, message } }, status);

export const throttled = (): ScriptedResponse => ({
  ...failed(429, "429", "Requests have exceeded the rate limit."),
  headers: { "content-type": "application/json", "retry-after": "60" },
});

/** The filter's rejection of a prompt. */
export const filtered = (): ScriptedResponse =>
  jsonResponse(
    {
      error: {
        message:
          "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
        type: null,
        param: "prompt",
        code: "content_filter",
        status: 400,
        innererror: {
          code: "ResponsibleAIPolicyViolation",
          content_filter_result: {
            hate: { filtered: false, severity: "safe" },
            violence: { filtered: true, severity: "high" },
          },
        },
      },
    },
    400,
  );

function refusal(fake: FakeAzure, asked: UpstreamRequest): ScriptedResponse | undefined {
  const claude = asked.path.startsWith("/anthropic/");
  const key = asked.headers[claude ? "x-api-key" : "api-key"];
  const bearer = (asked.headers.authorization ?? "").replace(/^Bearer /, "");
  return key === KEY || fake.good.has(bearer)
    ? undefined
    : failed(401, "401", "Access denied due to invalid subscription key or wrong API endpoint.");
}

const FILTER = { hate: { filtered: false, severity: "safe" } };

function answerTo(fake: FakeAzure, asked: UpstreamRequest): ScriptedResponse {
  const deployed = /^\/openai\/deployments\/([^/]+)\/(chat\/completions|embeddings)$/.exec(
    asked.path,
  );
  const legacy = deployed !== null || asked.path === "/openai/responses";
  if (legacy !== asked.query.has("api-version")) return failed(404, "404", "Resource not found");
  const body = asked.json();
  const model = deployed ? decodeURIComponent(deployed[1]!) : body.model;
  const manner = { stream: body.stream === true, model, body };
  if (asked.path === "/anthropic/v1/messages") return fake.says.toProtocol("messages", manner);
  if (/^\/openai\/(?:v1\/)?responses$/.test(asked.path))
    return fake.says.toProtocol("responses", manner);
  if (deployed?.[2] === "embeddings" || asked.path === "/openai/v1/embeddings")
    return vectors(body);
  if (deployed || asked.path === "/openai/v1/chat/completions")
    return annotated(fake.says.toProtocol("chat-completions", manner), manner.stream);
  return failed(404, "404", "Resource not found");
}

function vectors({ input, encoding_format: form }: any): ScriptedResponse {
  const texts: string[] = [input].flat();
  const data = texts.map((text, index) => {
    const numbers = [text.length / 8, 0.5];
    const base64 = Buffer.from(Float32Array.from(numbers).buffer).toString("base64");
    return { object: "embedding", index, embedding: form === "base64" ? base64 : numbers };
  });
  const tokens = texts.join(" ").split(" ").length;
  return {
    ...jsonResponse({
      object: "list",
      data,
      model: "m",
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    }),
    billedUsage: { input: tokens },
  };
}

/**
 * The filter's results: for the prompt in a first chunk without choices, and for the response next
 * to each choice.
 */
function annotated(answer: ScriptedResponse, stream: boolean): ScriptedResponse {
  const pieces = [answer.body ?? []].flat();
  const prompt = { prompt_filter_results: [{ prompt_index: 0, content_filter_results: FILTER }] };
  const body = pieces.map((piece) => {
    const told = typeof piece === "object" && "tells" in piece ? piece : undefined;
    const text = String(told ? told.bytes : piece);
    const bytes = stream
      ? text.replace(
          /^data: (\{[^\n]*\})/m,
          (_, data: string) => `data: ${JSON.stringify(marked(JSON.parse(data)))}`,
        )
      : JSON.stringify({ ...marked(JSON.parse(text)), ...prompt });
    return told ? { ...told, bytes } : bytes;
  });
  const first = { id: "", object: "", created: 0, model: "", choices: [], ...prompt };
  return { ...answer, body: stream ? [`data: ${JSON.stringify(first)}\n\n`, ...body] : body };
}

const marked = (said: any) => ({
  ...said,
  choices: (said.choices ?? []).map((choice: object) => ({
    ...choice,
    content_filter_results: FILTER,
  })),
});
