// The surfaces of a resource: v1, where a deployment is named in the body; deployments, where it stands in the address beside a
// version; and Anthropic's.
import type { Auth, CallContext, WireEndpoint } from "tollgate/plugin";
import { fail } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { embeddings } from "tollgate/protocols/embeddings";
import { claude, messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import type { Account } from "./auth.ts";
import { filtering } from "./filters.ts";

type Serves = (model: string) => boolean;

/** `version`: of the deployments' surface; without one all is asked at v1. */
export function openAi(
  resource: string,
  auth: Auth<Account>,
  serves: Serves,
  version: string | undefined,
): WireEndpoint<Account>[] {
  const query = version === undefined ? "" : `?api-version=${encodeURIComponent(version)}`;
  const at = (verb: string) =>
    version === undefined
      ? `/${verb}`
      : ({ model }: CallContext) => `/deployments/${step(model)}/${verb}${query}`;
  const own = {
    base: version === undefined ? `${resource}/openai/v1` : `${resource}/openai`,
    auth,
    serves,
  };
  return [
    { ...own, protocol: filtering(chatCompletions()), paths: { generate: at("chat/completions") } },
    // Where deployments stand in addresses, responses do not.
    { ...own, protocol: filtering(responses()), paths: { generate: `/responses${query}` } },
    {
      ...own,
      protocol: filtering(embeddings()),
      paths: { generate: at("embeddings") },
      streams: "never",
    },
  ];
}

export const anthropic = (
  base: string,
  auth: Auth<Account>,
  serves: Serves,
): WireEndpoint<Account> => ({
  protocol: messages(claude),
  base: `${base}/anthropic/v1`,
  auth,
  serves,
  headers: { "anthropic-version": "2023-06-01" },
});

/** A deployment's name is one step of the address, whatever is in it. */
function step(model: string): string {
  if (model === "" || model === "." || model === "..")
    fail("not_found", `There is no deployment ${model}.`, {
      param: "model",
      code: "model_not_found",
    });
  return encodeURIComponent(model);
}
