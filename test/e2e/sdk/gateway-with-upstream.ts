// A daemon in front of a fake upstream, reached by a client's protocol on one side and asked in another on the other.
import {
  say,
  scriptedModel,
  protocolAtPath,
  type UpstreamRequest,
  type ScriptedRoutes,
  type ScriptProtocol,
} from "tollgate/testing";
import { startInProcessWithUpstream, type InProcessWithUpstream } from "../../kit/in-process.ts";

export interface GatewayWithUpstream extends InProcessWithUpstream {
  /** What upstream was asked to generate, without lists and counts. */
  asked(): readonly UpstreamRequest[];
}

/** Every protocol an upstream can speak here, and the provider that speaks it: `up-chat/model`, `up-messages/model`, … */
export const UPSTREAMS: { readonly [protocol in ScriptProtocol]: string } = {
  "chat-completions": "up-chat",
  messages: "up-messages",
  responses: "up-responses",
};

export const SPOKEN = Object.keys(UPSTREAMS) as readonly ScriptProtocol[];

/** A model that is reached in this protocol. */
export const modelOn = (protocol: ScriptProtocol, name = "model") =>
  `${UPSTREAMS[protocol]}/${name}`;

const FRESH = 400;
let used = 0;
/** One that has not failed lately: what fails often is left alone. */
export const freshOn = (protocol: ScriptProtocol, of = FRESH): string =>
  modelOn(protocol, `m${used++ % of}`);

/** The part of gateway.yaml that reaches a fake upstream in each protocol. */
export const providers = (url: string, fresh = FRESH): string => `
providers:
  up-chat: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: sk-upstream-chat } }
  up-messages: { use: anthropic-compatible, with: { base_url: "${url}/v1", api_key: sk-upstream-messages, counts: true } }
  up-responses:
    use: openai
    with: { base_url: "${url}/v1", api_key: sk-upstream-responses }
    models: { model: { protocols: [responses] }, ${Array.from({ length: fresh }, (_, i) => `m${i}: { protocols: [responses] }`).join(", ")} }
`;

export const FRONTENDS = "frontends: [chat-completions, messages, responses, models]\n";

export async function startGatewayWithUpstream(
  routes: ScriptedRoutes = scriptedModel(say("Hello")),
  more = "middleware: [auth]\nstore: memory\n",
  fresh = FRESH,
): Promise<GatewayWithUpstream> {
  const at = await startInProcessWithUpstream(
    routes,
    (url) => FRONTENDS + more + providers(url, fresh),
  );
  const asked = () =>
    at.up.requests.filter(
      ({ method, path }) => method === "POST" && protocolAtPath(path) !== undefined,
    );
  return { ...at, asked };
}
