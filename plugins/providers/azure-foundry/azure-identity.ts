// Gets a token from the Azure Identity library, which supports CLI sign-ins, certificates, and
// other sources that this package does not implement.
import { fail, type MintedToken } from "tollgate/plugin";

/** The used part of the library. The library is optional. */
interface AzureIdentityModule {
  readonly DefaultAzureCredential: new () => {
    getToken(
      scope: string,
    ): Promise<{ readonly token: string; readonly expiresOnTimestamp: number }>;
  };
}

const NAME: string = "@azure/identity";

export async function tokenFromAzureIdentity(scope: string): Promise<MintedToken> {
  let library: AzureIdentityModule;
  try {
    library = (await import(NAME)) as AzureIdentityModule;
  } catch (error) {
    return fail(
      "upstream_auth",
      "`from: azure_identity` requires the package @azure/identity. Install it next to " +
        "this package.",
      { code: "missing_package", cause: error },
    );
  }
  try {
    const found = await new library.DefaultAzureCredential().getToken(scope);
    return { token: found.token, ttlMs: found.expiresOnTimestamp - Date.now() };
  } catch (error) {
    return fail("upstream_auth", "The Azure identity library found no credential.", {
      code: "no_token",
      cause: error,
    });
  }
}
