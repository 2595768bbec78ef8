// Coming in and going out: a code from the shell, or an operator's token, is traded for a session that scripts cannot read.
import { REQUEST_HEADERS, readResponse, CommandError } from "./admin-client.ts";

export interface Principal {
  readonly name: string;
  readonly role: string;
  readonly account?: string | null;
  /** The commands that it may use. */
  readonly commands: readonly string[];
  /** Where people sign in, if it is not only here. */
  readonly sign_in?: string;
}

const SESSION_URL = "/admin/v1/session";
const sessionRequest = (method: string, body?: object): Promise<Response> =>
  fetch(SESSION_URL, {
    method,
    headers: REQUEST_HEADERS,
    credentials: "same-origin",
    ...(body && { body: JSON.stringify(body) }),
  });

export const fetchPrincipal = (): Promise<Principal> =>
  sessionRequest("GET").then((answer) => readResponse<Principal>(answer));
export const openSession = (by: { code: string } | { token: string }): Promise<Principal> =>
  sessionRequest("POST", by).then((answer) => readResponse<Principal>(answer));
export const closeSession = (): Promise<unknown> => sessionRequest("DELETE");

/** What the address has after its `#`: the code of a sign-in link, or why a sign-in elsewhere failed. Removed from address and history. */
export function takeUrlFragment(): { readonly code?: string; readonly problem?: string } {
  const text = location.hash.slice(1);
  if (text) history.replaceState(null, "", location.pathname + location.search);
  const [, problem] = /^problem=(\w{1,60})$/.exec(text) ?? [];
  if (problem !== undefined) return { problem };
  return /^[\w-]{8,200}$/.test(text) ? { code: text } : {};
}

/** Why a sign-in with the identity provider failed, by the gateway's code. Only these texts are shown: the address is not trusted. */
const SIGN_IN_ERRORS: Readonly<Record<string, readonly [message: string, hint: string]>> = {
  no_role: [
    "You are signed in with your identity provider, but none of your groups has a role here.",
    "Ask an owner of this gateway to list one of your groups under admin.oidc.roles in gateway.yaml.",
  ],
  oidc_refused: [
    "The identity provider did not sign you in.",
    "Start again. If it fails again, the gateway's log says why.",
  ],
  oidc_unreachable: [
    "The identity provider cannot be reached from the gateway.",
    "Try again in a minute, or sign in with an admin token.",
  ],
  no_oidc: ["This gateway has no identity provider.", "Sign in with an admin token."],
};

export function signInError(code: string): CommandError {
  const [message, hint] = SIGN_IN_ERRORS[code] ?? [
    "Signing in with the identity provider failed.",
    "Start again. If it fails again, the gateway's log says why.",
  ];
  return new CommandError(403, { code, message, hint });
}
