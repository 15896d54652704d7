"""Labelled sentences: who says what, and the facts in it. These were written before the rules."""

from __future__ import annotations

Labelled = tuple[str, str, tuple[str, ...]]

FIRST_HALF: tuple[Labelled, ...] = (
    # names
    ("user", "Hi, my name is Alice Chen and I need help with a booking.", ("name: Alice Chen",)),
    ("user", "I'm called Bob.", ("name: Bob",)),
    ("user", "Please call me Sam.", ("name: Sam",)),
    ("user", "我叫张伟，想咨询一下订单。", ("name: 张伟",)),
    ("user", "我的名字是李小龙。", ("name: 李小龙",)),
    ("user", "What is my name?", ()),
    ("user", "My name is not important here.", ()),
    ("assistant", "My name is Aria and I am your assistant.", ()),
    # emails
    ("user", "You can reach me at alice@example.com.", ("email: alice@example.com",)),
    (
        "user",
        "My email: bob.smith+news@mail.example.co.uk",
        ("email: bob.smith+news@mail.example.co.uk",),
    ),
    ("user", "我的邮箱是zhang.wei@example.cn，谢谢。", ("email: zhang.wei@example.cn",)),
    ("user", "Clone git@github.com:acme/shop.git first.", ()),
    ("user", "```\nAUTHOR = 'someone@example.org'\n```", ()),
    # preferences
    ("user", "I prefer dark mode.", ("preference: I prefer dark mode",)),
    (
        "user",
        "I really like short answers with examples.",
        ("preference: I really like short answers with examples",),
    ),
    ("user", "I'd rather use tabs than spaces.", ("preference: I'd rather use tabs than spaces",)),
    ("user", "My favourite editor is Helix.", ("preference: My favourite editor is Helix",)),
    ("user", "I don't like long emails.", ("preference: I don't like long emails",)),
    ("user", "Please always answer in French.", ("preference: always answer in French",)),
    ("user", "Never use semicolons in my code.", ("preference: Never use semicolons in my code",)),
    ("user", "我喜欢深色模式。", ("preference: 我喜欢深色模式",)),
    ("user", "我不喜欢太长的回答。", ("preference: 我不喜欢太长的回答",)),
    ("user", "请始终用中文回答。", ("preference: 始终用中文回答",)),
    ("user", "I need to fix this bug today.", ()),
    ("user", "I want you to open the file main.py.", ()),
    ("user", "Do you think I prefer dark mode?", ()),
    ("user", "It looks like it is raining.", ()),
    ("user", "I would like to return an item.", ()),
    ("user", "你喜欢什么颜色？", ()),
    ("user", "如果我喜欢深色模式，该怎么设置", ()),
    ("assistant", "I prefer to check the file first.", ()),
    # decisions
    (
        "assistant",
        "We decided to use PostgreSQL for the database.",
        ("decision: decided to use PostgreSQL",),
    ),
    ("user", "We agreed to meet every Monday.", ("decision: agreed to meet every Monday",)),
    ("user", "Let's go with option B.", ("decision: go with option B",)),
    ("user", "We will use Redis for caching.", ("decision: will use Redis",)),
    ("user", "I've decided to keep the old layout.", ("decision: decided to keep the old layout",)),
    ("user", "我们决定使用PostgreSQL。", ("decision: 决定使用PostgreSQL",)),
    ("user", "就用方案B吧。", ("decision: 用方案B",)),
    ("user", "We have not decided to use Kafka.", ()),
    ("user", "If we decided to use Kafka, what would it cost?", ()),
    ("user", "Have we decided to use Kafka?", ()),
    ("user", "我们还没决定用哪个数据库。", ()),
    ("assistant", "> We decided to use Oracle\n\nThat was in the old document.", ()),
    ("user", 'He said "we decided to drop Python" in the podcast.', ()),
    ("assistant", "We could use Kafka or RabbitMQ.", ()),
    # dates
    ("user", "The deadline is March 3, 2026.", ("date: deadline: March 3, 2026",)),
    ("user", "My birthday is 5 June 1990.", ("date: birthday: 5 June 1990",)),
    ("user", "The launch is scheduled for 2026-04-01.", ("date: launch: 2026-04-01",)),
    ("user", "截止日期是2026年3月3日。", ("date: 截止日期: 2026年3月3日",)),
    ("user", "我的生日是6月5日。", ("date: 生日: 6月5日",)),
    ("user", "Is the deadline March 3?", ()),
    ("user", "The log of 2026-04-01 shows an error.", ()),
    # addresses
    (
        "user",
        "I live at 742 Evergreen Terrace, Springfield.",
        ("address: 742 Evergreen Terrace, Springfield",),
    ),
    (
        "user",
        "My shipping address is 12 Main Street, Apt 4, Boston, MA 02110.",
        ("address: 12 Main Street, Apt 4, Boston, MA 02110",),
    ),
    ("user", "我住在北京市海淀区中关村大街1号。", ("address: 北京市海淀区中关村大街1号",)),
    ("user", "收货地址是上海市浦东新区世纪大道100号。", ("address: 上海市浦东新区世纪大道100号",)),
    ("user", "I live at the moment without a fixed plan.", ()),
    # identifiers
    ("user", "My order number is #W5918442.", ("identifier: order number: #W5918442",)),
    ("user", "The ticket id is PROJ-1234.", ("identifier: ticket id: PROJ-1234",)),
    ("user", "my user id is mia_li_3668", ("identifier: user id: mia_li_3668",)),
    ("user", "我的订单号是20240315001。", ("identifier: 订单号: 20240315001",)),
    ("user", "我的手机号是13800138000。", ("identifier: 手机号: 13800138000",)),
    ("user", "My password is hunter2.", ()),
    ("user", "My credit card number is 4111 1111 1111 1111.", ()),
    ("user", "The line number is wrong.", ()),
    # entities
    ("user", "My manager is Maria Chen.", ("entity: manager: Maria Chen",)),
    ("user", "I work at Acme Corp.", ("entity: employer: Acme Corp",)),
    ("user", "我的经理是李娜。", ("entity: 经理: 李娜",)),
    ("user", "我在腾讯公司工作。", ("entity: 公司: 腾讯公司",)),
    ("user", "My manager is angry.", ()),
    # nothing at all
    ("user", "ok", ()),
    ("user", "def prefer(x):\n    return x.will_use", ()),
    ("user", "npm install failed with exit code 1", ()),
    ("assistant", "Let me check that for you.", ()),
    ("assistant", "Done. All 42 tests pass.", ()),
)
