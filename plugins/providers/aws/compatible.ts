// What the service has that speaks as others do, with events as text: OpenAI's protocols, and Anthropic's.
import type { Auth, WireEndpoint } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { claude, messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { called } from "./claude.ts";
import type { Account } from "./keys.ts";
import { faultOf } from "./refusal.ts";

type Serves = (model: string) => boolean;

/** Refusals before the protocol is reached are the service's own. */
const refusing = <P extends WireEndpoint["protocol"]>(protocol: P): P => {
  const client = protocol.client!;
  return {
    ...protocol,
    client: {
      ...client,
      fault: (status: number, headers: Parameters<typeof faultOf>[1], body: Buffer) =>
        headers["x-amzn-errortype"] === undefined
          ? client.fault(status, headers, body)
          : faultOf(status, headers, body),
    },
  };
};

export const inOpenAi = (
  base: string,
  auth: Auth<Account>,
  serves: Serves,
): WireEndpoint<Account>[] => [
  { protocol: refusing(chatCompletions()), base, auth, serves },
  { protocol: refusing(responses()), base, auth, serves },
];

export function inMessages(
  base: string,
  auth: Auth<Account>,
  serves: Serves,
): WireEndpoint<Account> {
  const own = messages({ ...claude, counts: false });
  const client = own.client!;
  const protocol = {
    ...own,
    client: {
      ...client,
      request: (...[r, of]: Parameters<typeof client.request>) => ({
        ...client.request(r, called(of)),
        model: of.model,
      }),
      thinks: (...[out, of]: Parameters<NonNullable<typeof client.thinks>>) =>
        client.thinks!(out, called(of)),
    },
  };
  return {
    protocol: refusing(protocol),
    base,
    auth,
    serves,
    headers: { "anthropic-version": "2023-06-01" },
  };
}
