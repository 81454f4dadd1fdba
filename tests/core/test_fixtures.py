import asyncpg


async def test_databases_are_fresh_and_have_the_schema(database_url: str, empty_database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    try:
        assert await connection.fetchval("SELECT to_regclass('work') IS NOT NULL")
        assert await connection.fetchval("SELECT count(*) FROM work") == 0
    finally:
        await connection.close()
    connection = await asyncpg.connect(empty_database_url)
    try:
        assert await connection.fetchval("SELECT to_regclass('work') IS NULL")
    finally:
        await connection.close()
