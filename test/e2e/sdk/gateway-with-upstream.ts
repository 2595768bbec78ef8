// A gateway with a fake upstream: a client's protocol on one side, and another one on the other.
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
  /** Generation requests to the upstream, without lists and counts. */
  asked(): readonly UpstreamRequest[];
}

/** Every upstream protocol, and its provider: `up-chat/model`, `up-messages/model`, … */
export const UPSTREAMS: { readonly [protocol in ScriptProtocol]: string } = {
  "chat-completions": "up-chat",
  messages: "up-messages",
  responses: "up-responses",
};

export const SPOKEN = Object.keys(UPSTREAMS) as readonly ScriptProtocol[];

/** A model that is called in this protocol. */
export const modelOn = (protocol: ScriptProtocol, name = "model") =>
  `${UPSTREAMS[protocol]}/${name}`;

const FRESH = 400;
let used = 0;
/** A model without recent failures, because a cooldown would affect it. */
export const freshOn = (protocol: ScriptProtocol, of = FRESH): string =>
  modelOn(protocol, `m${used++ % of}`);

/** The section of gateway.yaml with a fake upstream for each protocol. */
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
