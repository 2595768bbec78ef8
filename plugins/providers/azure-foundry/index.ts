// Azure AI Foundry, formerly Azure OpenAI: the deployments of a resource through OpenAI's
// protocols, and Claude through Anthropic's.
import { defineProvider } from "tollgate/plugin";
import { accountSchema, foundryAuth, ENV_VARIABLES } from "./auth.ts";
import { anthropicEndpoint, openAiEndpoints } from "./endpoints.ts";

const COGNITIVE = "https://cognitiveservices.azure.com/.default";
const FOUNDRY = "https://ai.azure.com/.default";

export default defineProvider({
  api: 1,
  name: "azure-foundry",
  summary: "Azure AI Foundry: deployments in OpenAI's protocols, Claude in Anthropic's",
  stability: "beta",
  unverified: ["managed identity", "Foundry's scope"],
  credential: accountSchema,
  needs: {
    env: ENV_VARIABLES,
    metadata: true,
    origins: (_options, env) => [env("IDENTITY_ENDPOINT") ?? "http://169.254.169.254"],
    files: ({ federated_token_file }) => [federated_token_file],
  },
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      resource: {
        type: "string",
        pattern: "^[a-zA-Z0-9-]+$",
        "x-expects": "the name of a resource",
        description: "The resource's name, which its addresses begin with",
      },
      base_url: {
        type: "string",
        minLength: 1,
        "x-origin": true,
        description:
          "Where the resource is, without /openai; https://<resource>.openai.azure.com when absent",
      },
      claude_url: {
        type: "string",
        minLength: 1,
        "x-origin": true,
        description:
          "Where Claude is, without /anthropic; https://<resource>.services.ai.azure.com when absent",
      },
      claude: {
        type: "array",
        items: { type: "string", minLength: 1 },
        default: ["claude-*"],
        description: "Deployments behind which Claude is; one * in each stands for anything",
      },
      api_version: {
        type: "string",
        pattern: "^\\d{4}-\\d{2}-\\d{2}(-preview)?$",
        "x-expects": "a version such as 2024-10-21",
        description: "Asks at /openai/deployments, with this version; at /openai/v1 when absent",
      },
      federated_token_file: {
        type: "string",
        minLength: 1,
        default: "/var/run/secrets/azure/tokens/azure-identity-token",
        description: "Of a federated workload: the file with its token, which is read each time",
      },
      login_url: {
        type: "string",
        minLength: 1,
        default: "https://login.microsoftonline.com",
        "x-origin": true,
        description: "Where Entra ID gives tokens",
      },
    },
  },
  *check({ resource, base_url }) {
    if (resource === undefined && base_url === undefined)
      yield { path: "", message: "Neither resource nor base_url says where it is." };
  },
  setup(o, ctx) {
    const at = (own: string | undefined, host: string) =>
      (own ?? `https://${o.resource}.${host}`).replace(/\/+$/, "");
    const resource = at(o.base_url, "openai.azure.com");
    const foundry = at(o.claude_url ?? o.base_url, "services.ai.azure.com");
    const isClaude = (model: string) => o.claude.some((pattern) => isLike(pattern, model));
    const entra = { loginUrl: o.login_url, file: o.federated_token_file };
    const key = foundryAuth(ctx, entra, { header: "api-key", scope: COGNITIVE });
    const other = foundryAuth(ctx, entra, { header: "x-api-key", scope: FOUNDRY });
    return {
      endpoints: [
        ...openAiEndpoints(resource, key, (model) => !isClaude(model), o.api_version),
        anthropicEndpoint(foundry, other, isClaude),
      ],
    };
  },
});

function isLike(pattern: string, model: string): boolean {
  const star = pattern.indexOf("*");
  if (star < 0) return pattern === model;
  const [head, tail] = [pattern.slice(0, star), pattern.slice(star + 1)];
  return (
    model.length >= head.length + tail.length && model.startsWith(head) && model.endsWith(tail)
  );
}
