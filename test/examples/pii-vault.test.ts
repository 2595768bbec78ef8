// The package's own tests, as its author runs them.
await import("../../examples/packages/middleware-pii-vault/test/pii-vault.test.ts");
