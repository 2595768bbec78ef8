// Identifies clients by the TLS certificates of their connections. The listener verifies the
// authority, and this middleware maps names to grants.
import {
  defineMiddleware,
  fail,
  LIMIT_SCHEMA,
  parseScopedLimit,
  type ClientCertificate,
  type Identity,
} from "tollgate/plugin";
import { GRANT_OPTIONS, LABELS_OPTION } from "./grant-options.ts";

export default defineMiddleware({
  api: 1,
  name: "client-certificates",
  summary: "Authenticate clients by their TLS certificates",
  stability: "beta",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    required: ["names"],
    properties: {
      names: {
        type: "object",
        minProperties: 1,
        propertyNames: {
          pattern: "^[^\\s*]*\\*?[^\\s*]*$",
          "x-expects": "a name in a certificate, such as batch.example or spiffe://corp/*",
        },
        description:
          "Certificate names, each with its permissions. A name is a DNS name, URI, or " +
          "email address from the subjectAltName, and can contain one *",
        additionalProperties: {
          type: "object",
          additionalProperties: false,
          properties: {
            ...GRANT_OPTIONS,
            limits: {
              type: "array",
              items: LIMIT_SCHEMA,
              description: "Limits of each client with this name",
            },
            labels: LABELS_OPTION,
          },
        },
      },
    },
  },
  setup({ names }) {
    const listed = Object.entries(names).map(([pattern, grants]) => ({
      fits: nameMatcher(pattern),
      grants,
    }));
    /**
     * Returns the identity of the first configured pattern that matches, and within it the first
     * matching name of the certificate.
     */
    const identityOf = (of: ClientCertificate): Identity | undefined => {
      for (const { fits, grants } of listed) {
        const name = of.names.find(fits);
        if (name === undefined) continue;
        const { limits, ...more } = grants;
        const id = `cert:${name}`;
        return {
          ...more,
          id,
          limits: limits?.map((l) => parseScopedLimit(l, `key:${id}`)),
        } as Identity;
      }
      return undefined;
    };
    return {
      admit(x) {
        const { certificate } = x;
        if (x.identity || !certificate) return;
        const who = identityOf(certificate);
        if (!who) return;
        // A connection may stay open after the certificate has expired.
        if (certificate.expiresAt <= Date.now())
          fail("unauthenticated", "The client certificate has expired.", {
            code: "certificate_ended",
          });
        x.identify(who);
      },
    };
  },
});

function nameMatcher(pattern: string): (name: string) => boolean {
  const star = pattern.indexOf("*");
  if (star < 0) return (name) => name === pattern;
  const [before, after] = [pattern.slice(0, star), pattern.slice(star + 1)];
  return (name) =>
    name.length > before.length + after.length && name.startsWith(before) && name.endsWith(after);
}
