// Checks whether the key of a client is still valid, for work that outlives the client's request.
import type { Context, Opt } from "tollgate/plugin";

/**
 * Whether the key may still be used. A key that the store does not contain is in gateway.yaml: it is
 * checked with each request only.
 * @param digest Digest of the key. Undefined if the client was identified in another way.
 */
export async function isKeyValid({ keys }: Pick<Context, "keys">, digest: Opt<string>) {
  if (digest == null || (await keys.findByDigest(digest)) !== undefined) return true;
  return (await keys.read(digest)) === undefined;
}
