// The part of a gateway.yaml in which one key is known, for a gateway in this process.
import { digestKey, mintKey } from "../../src/lib/api-key.ts";

/** A key that its gateway knows. */
export const KEY = mintKey().secret;

/** Stands in gateway.yaml in place of `middleware:`. */
export const ONE_KEY = `middleware: [{ use: auth, with: { keys: [{ id: tester, digest: ${digestKey(KEY)} }] } }]\n`;
