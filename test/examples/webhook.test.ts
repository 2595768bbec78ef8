// The package's own tests, as its author runs them.
await import("../../examples/packages/observer-webhook/test/webhook.test.ts");
