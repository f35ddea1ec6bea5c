module apisix-drain-hook

go 1.24
