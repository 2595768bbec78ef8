// Image providers of every dialect on one scripted upstream, with a gateway.
import {
  jsonResponse,
  startUpstream,
  type ScriptedReply,
  type TestUpstream,
} from "tollgate/testing";
import OpenAI from "openai";
import { digestKey } from "../../../src/lib/api-key.ts";
import { startDaemon } from "../../kit/process/daemon.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { png } from "../../protocols/images/pictures.ts";

export const KEYS = { alice: "alice-key", bob: "bob-key" } as const;
export const PICTURE = png(32, 24);
export const B64 = PICTURE.toString("base64");
export const USAGE = {
  input_tokens: 9,
  output_tokens: 1_000,
  total_tokens: 1_009,
  input_tokens_details: { text_tokens: 9, image_tokens: 0 },
  output_tokens_details: { text_tokens: 0, image_tokens: 1_000 },
};

/** A model list in OpenAI's format. */
export const list = (...ids: string[]) =>
  jsonResponse({ object: "list", data: ids.map((id) => ({ id, object: "model", created: 1 })) });

/** A provider that returns the requested format. */
const asked: ScriptedReply = (request) =>
  jsonResponse({
    created: 1,
    data: [
      request.json().response_format === "url"
        ? { url: `http://${request.headers.host}/picture.png` }
        : { b64_json: B64 },
    ],
  });

export interface Host {
  readonly provider: string;
  readonly model: string;
  /** Under `providers:`. `up` is replaced by the upstream's origin. */
  readonly yaml: string;
  readonly routes: { readonly [route: string]: ScriptedReply };
}

export const HOSTS: readonly Host[] = [
  { provider: "demo", model: "demo/image", yaml: "{ use: demo }", routes: {} },
  {
    provider: "openai",
    model: "openai/gpt-image-2",
    yaml: '{ use: openai, with: { api_key: k, base_url: "up/openai/v1" } }',
    routes: {
      "GET /openai/v1/models": list("gpt-6", "gpt-image-2", "gpt-image-1.5"),
      "POST /openai/v1/images/generations": (request) =>
        "response_format" in request.json()
          ? jsonResponse({ error: { message: "Unknown parameter: 'response_format'." } }, 400)
          : jsonResponse({ created: 1, data: [{ b64_json: B64 }], usage: USAGE }),
    },
  },
  {
    provider: "google",
    model: "google/gemini-3-pro-image",
    yaml: '{ use: google, with: { api_key: k, base_url: "up/google" } }',
    routes: {
      "GET /google/v1beta/models": jsonResponse({
        models: [
          {
            name: "models/gemini-3-pro-image",
            supportedGenerationMethods: ["generateContent"],
          },
        ],
      }),
      "POST /google/v1beta/models/*": jsonResponse({
        candidates: [
          {
            content: {
              role: "model",
              parts: [{ inlineData: { mimeType: "image/png", data: B64 } }],
            },
            finishReason: "STOP",
          },
        ],
        usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 1_120, totalTokenCount: 1_125 },
      }),
    },
  },
  {
    provider: "xai",
    model: "xai/grok-imagine-image",
    yaml: '{ use: xai, with: { api_key: k, base_url: "up/xai/v1" } }',
    routes: {
      "GET /xai/v1/models": list("grok-5", "grok-imagine-image"),
      "POST /xai/v1/images/generations": asked,
    },
  },
  {
    provider: "together",
    model: "together/black-forest-labs/flux-schnell",
    yaml: '{ use: together, with: { api_key: k, base_url: "up/together/v1" } }',
    routes: {
      "GET /together/v1/models": jsonResponse([
        { id: "black-forest-labs/flux-schnell", type: "image" },
      ]),
      "POST /together/v1/images/generations": asked,
    },
  },
  {
    provider: "recraft",
    model: "recraft/recraftv3",
    yaml: '{ use: recraft, with: { api_key: k, base_url: "up/recraft/v1" } }',
    routes: { "POST /recraft/v1/images/generations": asked },
  },
  {
    // It only has URLs, on a private network.
    provider: "local",
    model: "local/sdxl",
    yaml: '{ use: openai-compatible, with: { api_key: k, base_url: "up/local/v1", images: ["sd*"], image_response_format: url } }',
    routes: {
      "GET /local/v1/models": list("sdxl", "llama"),
      "POST /local/v1/images/generations": (request) =>
        jsonResponse({ created: 1, data: [{ url: `http://${request.headers.host}/picture.png` }] }),
    },
  },
  {
    provider: "bfl",
    model: "bfl/flux-pro-1.1",
    yaml: '{ use: bfl, with: { api_key: k, base_url: "up/bfl/v1" } }',
    routes: {
      "POST /bfl/v1/*": (request) =>
        jsonResponse({ id: "j", polling_url: `http://${request.headers.host}/poll`, cost: 4 }),
      "GET /poll": (request) =>
        jsonResponse({
          status: "Ready",
          result: { sample: `http://${request.headers.host}/picture.png` },
        }),
    },
  },
];

/** A signal ends a gateway that runs in a process of its own. */
export type StudioGateway = Omit<InProcessGateway, "stop"> & {
  stop(signal?: NodeJS.Signals): Promise<unknown>;
};

export interface Studio extends AsyncDisposable {
  readonly up: TestUpstream;
  readonly gateway: StudioGateway;
  client(key?: string): OpenAI;
  /** Refreshes every provider's list, and returns the gateway's status. */
  refresh(provider?: string): Promise<any>;
  /** The body of the last request to a model. */
  last(): any;
  /** The same folder with another gateway. */
  restart(): Promise<void>;
}

export async function studio(
  of: {
    hosts?: readonly string[];
    /** More entries under `providers:`, for an upstream at this address. */
    providers?: (up: string) => string;
    /** More of gateway.yaml. */
    yaml?: string;
    routes?: Host["routes"];
    store?: "memory" | "sqlite";
    /**
     * Returns the environment of a gateway in a process of its own. What it loads into the program
     * must not change the source.
     */
    program?: (up: TestUpstream) => Record<string, string>;
  } = {},
): Promise<Studio> {
  const { hosts, yaml: more = "", providers, routes, store = "memory" } = of;
  const mine = HOSTS.filter(({ provider }) => hosts?.includes(provider) ?? true);
  const up = await startUpstream({
    "GET /picture.png": { headers: { "content-type": "image/png" }, body: PICTURE },
    ...Object.assign({}, ...mine.map((host) => host.routes)),
    ...routes,
  });
  const yaml = `
store: { use: ${store} }
frontends: [images, models, chat-completions]
retries: { per_target: 1 }
middleware:
  - use: auth
    with:
      keys:
        - { id: alice, digest: "${digestKey(KEYS.alice)}" }
        - { id: bob, digest: "${digestKey(KEYS.bob)}", models: ["demo/*"] }
  - zdr
  - usage
providers:
${mine.map((host) => `  ${host.provider}: ${host.yaml.replaceAll("up/", `${up.url}/`)}\n`).join("")}${providers?.(up.url) ?? ""}
${more}`;
  const env = of.program?.(up) ?? {};
  const built = process.env["TOLLGATE_TESTS"] === "built";
  const start = (dir?: string): Promise<StudioGateway> => {
    const options = { yaml, env, ...(dir !== undefined && { dir }) };
    return of.program ? startDaemon({ ...options, built }) : startInProcess(options);
  };
  let gateway = await start();
  const made: Studio = {
    up,
    get gateway() {
      return gateway;
    },
    client: (apiKey = KEYS.alice) =>
      new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey, maxRetries: 0 }),
    refresh: (provider) => gateway.ask("models.refresh", { provider }),
    last: () => up.requests.findLast(({ method }) => method === "POST")!.json(),
    async restart() {
      await gateway.stop();
      gateway = await start(gateway.dir);
    },
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await up.close();
    },
  };
  await made.refresh();
  return made;
}

/** An SDK's error, without its stack. */
export const raised = (run: Promise<unknown>): Promise<any> =>
  run.then(
    () => {
      throw new Error("nothing was raised");
    },
    ({ status, code, param, message }) => ({ status, code, param, message }),
  );
