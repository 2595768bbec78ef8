// Bedrock's endpoints for OpenAI's and Anthropic's protocols, with events as text.
import type { Auth, ProtocolEndpoint } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { claude, messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { withAnthropicName } from "./claude.ts";
import type { AwsAccount } from "./aws-credentials.ts";
import { parseAwsError } from "./errors.ts";

type Serves = (model: string) => boolean;

/** Errors that occur before the protocol is reached have AWS's own format. */
const withAwsErrors = <P extends ProtocolEndpoint["protocol"]>(protocol: P): P => {
  const client = protocol.client!;
  return {
    ...protocol,
    client: {
      ...client,
      decodeFault: (status: number, headers: Parameters<typeof parseAwsError>[1], body: Buffer) =>
        headers["x-amzn-errortype"] === undefined
          ? client.decodeFault(status, headers, body)
          : parseAwsError(status, headers, body),
    },
  };
};

export const openAiEndpoints = (
  base: string,
  auth: Auth<AwsAccount>,
  serves: Serves,
): ProtocolEndpoint<AwsAccount>[] => [
  { protocol: withAwsErrors(chatCompletions()), base, auth, servesModel: serves },
  { protocol: withAwsErrors(responses()), base, auth, servesModel: serves },
];

export function messagesEndpoints(
  base: string,
  auth: Auth<AwsAccount>,
  serves: Serves,
): ProtocolEndpoint<AwsAccount> {
  const own = messages({ ...claude, countsTokens: false });
  const client = own.client!;
  const protocol = {
    ...own,
    client: {
      ...client,
      encodeRequest: (...[r, of]: Parameters<typeof client.encodeRequest>) => ({
        ...client.encodeRequest(r, withAnthropicName(of)),
        model: of.model,
      }),
      mayHideReasoning: (...[out, of]: Parameters<NonNullable<typeof client.mayHideReasoning>>) =>
        client.mayHideReasoning!(out, withAnthropicName(of)),
    },
  };
  return {
    protocol: withAwsErrors(protocol),
    base,
    auth,
    servesModel: serves,
    headers: { "anthropic-version": "2023-06-01" },
  };
}
