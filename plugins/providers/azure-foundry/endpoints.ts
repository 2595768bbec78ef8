// The endpoints of a resource: v1, with the deployment in the body; deployments, with the
// deployment in the path and an API version in the query; and Anthropic's.
import type { Auth, CallContext, ProtocolEndpoint } from "tollgate/plugin";
import { fail } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { embeddings } from "tollgate/protocols/embeddings";
import { claude, messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import type { AzureAccount } from "./auth.ts";
import { withContentFilterDetails } from "./content-filter.ts";

type Serves = (model: string) => boolean;

/** `version`: API version for the deployments endpoint. If unset, all requests use v1. */
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
    // The responses API has no deployment in its path, even on the deployments endpoint.
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

/** Encodes a deployment name as one path segment. */
function encodeDeployment(model: string): string {
  if (model === "" || model === "." || model === "..")
    fail("not_found", `Deployment ${model} not found.`, {
      param: "model",
      code: "model_not_found",
    });
  return encodeURIComponent(model);
}
