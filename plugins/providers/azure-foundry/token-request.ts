// One question for a token, and what its answer says.
import { fail, type Context, type MintedToken } from "tollgate/plugin";

/** With a form it is posted, without one it is got. */
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
  return fail("upstream_auth", `Entra ID gave no token: ${answer.status}${words}.`, {
    code: "no_token",
  });
}

/** As a number, as a text, or as the moment at which it ends: three services, three words. */
function parseExpiresIn(said: { readonly [name: string]: unknown }): number {
  const left = Number(said["expires_in"] ?? Number.NaN);
  if (Number.isFinite(left)) return left;
  const ends = Number(said["expires_on"] ?? Number.NaN);
  return Number.isFinite(ends) ? ends - Date.now() / 1000 : 3600;
}
