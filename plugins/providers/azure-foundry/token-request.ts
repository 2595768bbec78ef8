// Sends a token request and reads its response.
import { fail, type Context, type MintedToken } from "tollgate/plugin";

/** A token request. It is a POST with a form, or a GET without one. */
export interface TokenRequest {
  readonly url: string;
  readonly form?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
}

export async function requestToken(
  fetch: Context["fetch"],
  { url, form, headers }: TokenRequest,
): Promise<MintedToken> {
  const answer = await fetch(
    url,
    form
      ? {
          method: "POST",
          headers: { "content-type": "application/x-www-form-urlencoded" },
          body: new URLSearchParams(form).toString(),
        }
      : { headers: headers ?? {} },
  );
  const response = (await answer.json().catch(() => ({}))) as {
    readonly [name: string]: unknown;
  } | null;
  const token = response?.["access_token"];
  if (answer.ok && typeof token === "string" && token !== "")
    return { token, ttlMs: 1000 * parseExpiresIn(response!) };
  const code = response?.["error"];
  const words = typeof code === "string" ? ` (${code.slice(0, 100)})` : "";
  return fail("upstream_auth", `Entra ID did not issue a token: status ${answer.status}${words}.`, {
    code: "no_token",
  });
}

/**
 * Reads the token's lifetime. The three services send it as a number, as a string, or as an expiry
 * time.
 */
function parseExpiresIn(said: { readonly [name: string]: unknown }): number {
  const left = Number(said["expires_in"] ?? Number.NaN);
  if (Number.isFinite(left)) return left;
  const ends = Number(said["expires_on"] ?? Number.NaN);
  return Number.isFinite(ends) ? ends - Date.now() / 1000 : 3600;
}
