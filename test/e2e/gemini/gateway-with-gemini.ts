// The real gateway with a fake Gemini API. It lists its models on two pages, and validates requests
// as documented: alternating roles, results in order, and signatures for newer models.
import { jsonResponse, say, type UpstreamRequest, type ModelScript } from "tollgate/testing";
import { startInProcessWithUpstream, type InProcessWithUpstream } from "../../kit/in-process.ts";
import { judged } from "../../protocols/gemini/judge.ts";
import { speakingGemini } from "../../protocols/gemini/speech.ts";

export const MODEL = "google/gemini-3.5-flash";
export const IMAGE = "google/gemini-3-pro-image";
export const SIGNATURE = "CiQBjz1rX4u8Wq9zv0R2H3Jp5mGmBw+L7dT2Yy/0a1bQ=";
export const API_KEY = "AIza-secret";

export interface GatewayWithGemini extends InProcessWithUpstream {
  /** The generation request to the upstream. */
  asked(): readonly UpstreamRequest[];
  /** Sets its response, and clears its recorded requests. */
  speak(what: ModelScript | ((asked: UpstreamRequest) => ModelScript)): void;
}

/** Two pages, with models that have no method here. */
function paged(asked: UpstreamRequest) {
  const model = (name: string, methods = ["generateContent", "countTokens"]) => ({
    name: `models/${name}`,
    displayName: name.toUpperCase(),
    inputTokenLimit: 1_048_576,
    outputTokenLimit: 65_536,
    supportedGenerationMethods: methods,
    thinking: true,
  });
  return jsonResponse(
    asked.query.get("pageToken") === "second/page"
      ? { models: [model("gemini-3-pro-image"), model("gemini-2.5-flash-preview-tts")] }
      : {
          models: [model("gemini-3.5-flash"), model("gemini-embedding-001", ["embedContent"])],
          nextPageToken: "second/page",
        },
  );
}

const LIST = { "GET /v1beta/models": paged };

/** `more`: further sections of gateway.yaml, after the providers. */
export async function startGatewayWithGemini(
  more: (url: string) => string = () => "",
): Promise<GatewayWithGemini> {
  const at = await startInProcessWithUpstream(
    { ...speakingGemini(say("Hi")), ...LIST },
    (url) => `
frontends: [chat-completions, messages, responses, images, models]
middleware: [auth]
store: memory
providers:
  google: { use: google, with: { api_key: ${API_KEY}, base_url: "${url}" } }
${more(url)}`,
  );
  const { up } = at;
  return {
    ...at,
    asked: () => up.requests.filter(({ method, path }) => method === "POST" && !/count/.test(path)),
    speak(what) {
      up.reset();
      const speaking = speakingGemini((asked) => {
        judged(asked.json());
        return typeof what === "function" ? what(asked) : what;
      });
      up.setRoutes({ ...speaking, ...LIST });
    },
  };
}
