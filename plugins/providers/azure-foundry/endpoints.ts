// The surfaces of a resource: v1, where a deployment is named in the body; deployments, where it stands in the address beside a
// version; and Anthropic's.
import type { Auth, CallContext, ProtocolEndpoint } from "tollgate/plugin";
import { fail } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { embeddings } from "tollgate/protocols/embeddings";
import { claude, messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import type { AzureAccount } from "./auth.ts";
import { withContentFilterDetails } from "./content-filter.ts";

type Serves = (model: string) => boolean;

/** `version`: of the deployments' surface; without one all is asked at v1. */
export function openAiEndpoints(
  resource: string,
  auth: Auth<AzureAccount>,
  serves: Serves,
  version: string | undefined,
): ProtocolEndpoint<AzureAccount>[] {
  const query = version === undefined ? "" : `?api-version=${encodeURIComponent(version)}`;
  const at = (verb: string) =>
    version === undefined
      ? `/${verb}`
      : ({ model }: CallContext) => `/deployments/${encodeDeployment(model)}/${verb}${query}`;
  const own = {
    base: version === undefined ? `${resource}/openai/v1` : `${resource}/openai`,
    auth,
    servesModel: serves,
  };
  return [
    {
      ...own,
      protocol: withContentFilterDetails(chatCompletions()),
      paths: { generate: at("chat/completions") },
    },
    // Where deployments stand in addresses, responses do not.
    {
      ...own,
      protocol: withContentFilterDetails(responses()),
      paths: { generate: `/responses${query}` },
    },
    {
      ...own,
      protocol: withContentFilterDetails(embeddings()),
      paths: { generate: at("embeddings") },
      streaming: "never",
    },
  ];
}

export const anthropicEndpoint = (
  base: string,
  auth: Auth<AzureAccount>,
  serves: Serves,
): ProtocolEndpoint<AzureAccount> => ({
  protocol: messages(claude),
  base: `${base}/anthropic/v1`,
  auth,
  servesModel: serves,
  headers: { "anthropic-version": "2023-06-01" },
});

/** A deployment's name is one step of the address, whatever is in it. */
function encodeDeployment(model: string): string {
  if (model === "" || model === "." || model === "..")
    fail("not_found", `There is no deployment ${model}.`, {
      param: "model",
      code: "model_not_found",
    });
  return encodeURIComponent(model);
}
