// The part of a gateway.yaml that configures one key, for a gateway in this process.
import { digestKey, mintKey } from "../../src/lib/api-key.ts";

/** A key that its gateway accepts. */
export const KEY = mintKey().secret;

/** Replaces `middleware:` in gateway.yaml. */
export const ONE_KEY = `middleware: [{ use: auth, with: { keys: [{ id: tester, digest: ${digestKey(KEY)} }] } }]\n`;
