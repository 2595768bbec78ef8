// Each kind and form of `tollgate new`, with the operator's config and a client's request.
import { join } from "node:path";
import {
  readRecordings,
  replayResponse,
  say,
  scriptedModel,
  type ScriptedRoutes,
} from "tollgate/testing";
import { root } from "./clean-install.ts";

export interface AuthoredKind {
  readonly words: readonly string[];
  readonly package: string;
  /** gateway.yaml of an operator who installed it. */
  yaml(url: string): string;
  readonly upstream?: () => ScriptedRoutes;
  /** A client's request and the expected response. If unset: demo/echo on /v1/chat/completions. */
  readonly model?: string;
  readonly path?: string;
  readonly says?: string;
}

const DEMO = "providers:\n  demo: { use: demo }\n";
const provider = (url: string, use = "acme") =>
  `providers:\n  acme: { use: ${use}, with: { base_url: "${url}/v1", api_key: "\${env:ACME}" } }\n`;
const hello = (): ScriptedRoutes => scriptedModel(say("Hello"), ["model"]);
const recorded = (folder: string) => readRecordings(join(root, "templates", folder));

export const KINDS: readonly AuthoredKind[] = [
  ...["openai", "anthropic"].map((like): AuthoredKind => ({
    words: ["provider", "acme", "--template", like],
    package: "tollgate-provider-acme",
    yaml: provider,
    upstream: hello,
    model: "acme/model",
    says: "Hello",
  })),
  {
    words: ["provider", "acme", "--template", "native"],
    package: "tollgate-provider-acme",
    yaml: provider,
    upstream: () => ({
      "POST /v1/say": replayResponse(recorded("provider-native/test/recordings/native/hello")[0]!),
    }),
    model: "acme/model",
    says: "Hello ☕",
  },
  {
    words: ["row", "acme"],
    package: "tollgate-provider-acme",
    yaml: provider,
    upstream: hello,
    model: "acme/model",
    says: "Hello",
  },
  {
    words: ["protocol", "acme"],
    package: "tollgate-protocol-acme",
    yaml: (url) =>
      `frontends: [chat-completions, { use: tollgate-protocol-acme/frontend }]\n${provider(url, "tollgate-protocol-acme/provider")}`,
    upstream: () => ({
      "POST /v1/say": replayResponse(recorded("protocol/test/recordings/whole")[0]!),
    }),
    model: "acme/model",
    says: "Hello ☕",
  },
  {
    words: ["frontend", "acme"],
    package: "tollgate-frontend-acme",
    yaml: () => `frontends: [acme]\n${DEMO}`,
    path: "/acme/chat",
  },
  {
    words: ["middleware", "acme", "--template", "guard"],
    package: "tollgate-middleware-acme",
    yaml: () => `middleware: [auth, { use: acme, with: { words: [tulip] } }, limits]\n${DEMO}`,
  },
  {
    words: ["middleware", "acme", "--template", "cache"],
    package: "tollgate-middleware-acme",
    yaml: () => `middleware: [auth, acme, limits]\n${DEMO}`,
  },
  {
    words: ["middleware", "acme", "--template", "route"],
    package: "tollgate-middleware-acme",
    yaml: () => `middleware: [auth, acme, limits]\n${DEMO}`,
  },
  {
    words: ["observer", "acme"],
    package: "tollgate-observer-acme",
    yaml: () => `observers: [acme]\n${DEMO}`,
  },
  {
    words: ["store", "acme"],
    package: "tollgate-store-acme",
    yaml: () => `store: acme\n${DEMO}`,
  },
];
