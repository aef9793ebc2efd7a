"""The HTTP doors: data plane, admin plane, OpenAPI, problem documents."""
