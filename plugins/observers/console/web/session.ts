// Sign-in and sign-out. A code from the command line or an operator's token is exchanged for a
// session that scripts cannot read.
import { REQUEST_HEADERS, readResponse, CommandError } from "./admin-client.ts";

export interface Principal {
  readonly name: string;
  readonly role: string;
  readonly account?: string | null;
  /** Commands that the principal may run. */
  readonly commands: readonly string[];
  /** URL for signing in with the identity provider, if one is configured. */
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

/**
 * Returns the URL fragment and removes it from the URL and the history. The fragment contains the
 * code of a sign-in link or the error code of a failed sign-in.
 */
export function takeUrlFragment(): { readonly code?: string; readonly problem?: string } {
  const text = location.hash.slice(1);
  if (text) history.replaceState(null, "", location.pathname + location.search);
  const [, problem] = /^problem=(\w{1,60})$/.exec(text) ?? [];
  if (problem !== undefined) return { problem };
  return /^[\w-]{8,200}$/.test(text) ? { code: text } : {};
}

/**
 * Messages for a failed sign-in with the identity provider, by error code. Only these texts are
 * shown, because the URL is not trusted.
 */
const SIGN_IN_ERRORS: Readonly<Record<string, readonly [message: string, hint: string]>> = {
  no_role: [
    "You are signed in with your identity provider, but none of your groups has a role in this gateway.",
    "Ask an owner of this gateway to list one of your groups under admin.oidc.roles in gateway.yaml.",
  ],
  oidc_refused: [
    "The identity provider did not complete the sign-in.",
    "Try again. If it fails again, see the gateway log.",
  ],
  oidc_unreachable: [
    "The gateway cannot reach the identity provider.",
    "Try again in 1 minute, or sign in with an admin token.",
  ],
  no_oidc: ["No identity provider is configured.", "Sign in with an admin token."],
};

export function signInError(code: string): CommandError {
  const [message, hint] = SIGN_IN_ERRORS[code] ?? [
    "Sign-in with the identity provider failed.",
    "Try again. If it fails again, see the gateway log.",
  ];
  return new CommandError(403, { code, message, hint });
}

// Dark or light theme, from the system or from the reader's choice, which the browser stores.
const STORAGE_KEY = "tollgate-theme";

const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(STORAGE_KEY);
    return stored === "light" || stored === "dark" ? stored : "system";
  } catch {
    return "system";
  }
}

export const theme = {
  get: storedTheme,
  set(to: Theme): void {
    try {
      if (to === "system") localStorage.removeItem(STORAGE_KEY);
      else localStorage.setItem(STORAGE_KEY, to);
    } catch {
      // If the browser stores nothing, the choice applies until the page is closed.
    }
    theme.apply(to);
  },
  apply(to: Theme = storedTheme()): void {
    if (to === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = to;
    dispatchEvent(new Event("tollgate-theme"));
  },
};

// The commands that the reader may run, as listed by the gateway at sign-in. Pages call and offer
// only these commands, so no part of a page shows a permission error.

let allowedCommands: ReadonlySet<string> = new Set();

/** Called at sign-in and at sign-out. */
export function setAllowedCommands(commands: readonly string[]): void {
  allowedCommands = new Set(commands);
}

export const isAllowed = (...commands: readonly string[]): boolean =>
  commands.every((each) => allowedCommands.has(each));
