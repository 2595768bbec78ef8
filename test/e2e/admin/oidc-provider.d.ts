// The part of the identity provider that the tests use, because it has no types.
declare module "oidc-provider" {
  import type { RequestListener } from "node:http";
  export default class Provider {
    constructor(issuer: string, configuration: object);
    callback(): RequestListener;
    on(event: string, listener: (ctx: never) => void): void;
    interactionFinished(
      req: Parameters<RequestListener>[0],
      res: Parameters<RequestListener>[1],
      result: { login: { accountId: string }; consent?: object },
    ): Promise<void>;
    Grant: new (of: { clientId: string; accountId: string }) => {
      addOIDCScope(scope: string): void;
      save(): Promise<string>;
    };
  }
}
