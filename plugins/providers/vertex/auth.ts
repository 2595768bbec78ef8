// Authentication with a key or a token. The token comes from a service account, application default
// credentials, or the configuration.
import { createHash } from "node:crypto";
import {
  AccountTokens,
  fail,
  type Context,
  type MintedToken,
  type TokenAuth,
} from "tollgate/plugin";
import { createAssertion, parseServiceAccount } from "./service-account.ts";

/** A credential as configured by the operator. */
export interface VertexAccount {
  readonly service_account?: string;
  readonly access_token?: string;
  readonly api_key?: string;
  readonly from?: "adc";
}

export const accountSchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    service_account: {
      type: "string",
      minLength: 1,
      "x-secret": true,
      description: "JSON key of a service account, as downloaded from Google",
    },
    access_token: {
      type: "string",
      minLength: 1,
      "x-secret": true,
      description: "Access token that another process refreshes",
    },
    api_key: {
      type: "string",
      minLength: 1,
      "x-secret": true,
      description: "Express key, for Gemini only, without a project",
    },
    from: {
      const: "adc",
      description:
        "Application default credentials: the credentials of gcloud, the machine, a " +
        "pod, or a federated workload. Requires the package google-auth-library",
    },
  },
} as const;

const SCOPE = "https://www.googleapis.com/auth/cloud-platform";

/** Returns the authentication. `tokenUrl` is the token endpoint for service accounts. */
export function vertexAuth(
  ctx: Pick<Context, "fetch" | "shared">,
  tokenUrl: string,
): TokenAuth<VertexAccount> {
  const tokens = ctx.shared("tokens", () => new AccountTokens(Date.now));
  const clock = ctx.shared("clock", () => ({ aheadMs: 0 }));
  const minted = (json: string): Promise<MintedToken> =>
    requestToken(ctx.fetch, tokenUrl, json, clock);
  const nameOf = (json: string) =>
    createHash("sha256").update(`${tokenUrl}\n${json}`).digest("hex");
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  return {
    sign(_request, account) {
      if (account.api_key !== undefined) return { "x-goog-api-key": account.api_key };
      if (account.access_token !== undefined) return bearer(account.access_token);
      const json = account.service_account;
      const token =
        json === undefined
          ? account.from === "adc"
            ? tokens.get("adc", tokenFromAdc)
            : fail("upstream_auth", "Missing service_account, key, or token in the credential.", {
                code: "no_credential",
              })
          : tokens.get(nameOf(json), () => minted(json));
      return typeof token === "string" ? bearer(token) : token.then(bearer);
    },
    async renewToken({ status }, account) {
      const json = account.service_account;
      if (status !== 401 || account.api_key !== undefined || account.access_token !== undefined)
        return false;
      if (json !== undefined) await tokens.renew(nameOf(json), () => minted(json));
      else if (account.from === "adc") await tokens.renew("adc", tokenFromAdc);
      else return false;
      return true;
    },
  };
}

/**
 * Requests a token. An assertion is valid for 1 hour, measured by the clock of the token endpoint.
 * If it is rejected because of its time, another assertion is created with the time of that clock.
 */
async function requestToken(
  fetch: Context["fetch"],
  url: string,
  json: string,
  clock: { aheadMs: number },
): Promise<MintedToken> {
  const account = parseServiceAccount(json);
  for (let turn = 0; ; turn++) {
    const answer = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams({
        grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
        assertion: createAssertion(account, url, Date.now() + clock.aheadMs),
      }).toString(),
    });
    const response = (await answer.json().catch(() => ({}))) as {
      readonly [name: string]: unknown;
    };
    const { access_token: token, expires_in: seconds } = response ?? {};
    if (answer.ok && typeof token === "string" && token !== "")
      return { token, ttlMs: 1000 * (typeof seconds === "number" ? seconds : 3600) };
    const there = Date.parse(answer.headers.get("date") ?? "");
    const ahead = there - Date.now();
    if (
      turn === 0 &&
      response?.["error"] === "invalid_grant" &&
      Math.abs(ahead - clock.aheadMs) > 5_000
    ) {
      clock.aheadMs = ahead;
      continue;
    }
    return fail(
      "upstream_auth",
      `Google did not issue a token: status ${answer.status}${wordsOf(response)}.`,
      {
        code: "no_token",
      },
    );
  }
}

const wordsOf = (response: { readonly [name: string]: unknown } | null): string => {
  const words = response?.["error_description"] ?? response?.["error"];
  return typeof words === "string" ? ` (${words.slice(0, 200)})` : "";
};

/**
 * Gets a token from the library, which caches and renews it. Called again when a token is rejected.
 */
async function tokenFromAdc(): Promise<MintedToken> {
  let library: typeof import("google-auth-library");
  try {
    library = await import("google-auth-library");
  } catch (error) {
    return fail(
      "upstream_auth",
      "`from: adc` requires the package google-auth-library. Install it next to this package.",
      {
        code: "missing_package",
        cause: error,
      },
    );
  }
  try {
    const client = await new library.GoogleAuth({ scopes: [SCOPE] }).getClient();
    const { token } = await client.getAccessToken();
    const ends = client.credentials.expiry_date;
    if (token) return { token, ttlMs: ends ? ends - Date.now() : 600_000 };
  } catch (error) {
    return fail("upstream_auth", "Cannot get a token with the application default credentials.", {
      code: "no_token",
      cause: error,
    });
  }
  return fail("upstream_auth", "The application default credentials returned no token.", {
    code: "no_token",
  });
}
